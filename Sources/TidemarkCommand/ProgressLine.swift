#if Server
    import Foundation
    import Tidemark

    /// How far a sync has come, with its rate and the time that is left: on one line for a terminal, or as JSON.
    struct ProgressLine: Codable, Hashable {
        struct Part: Codable, Hashable {
            var done: Int
            var total: Int?
            /// Rows in a second, since work began after the last rest.
            var rate: Double?
            /// Seconds until the total is reached at that rate.
            var secondsLeft: Double?

            init(_ part: SyncProgress.Part, since first: SyncProgress.Part, after seconds: Double) {
                (done, total) = (part.done, part.total)
                guard seconds > 0, part.done > first.done else { return }
                let rate = Double(part.done - first.done) / seconds
                self.rate = (rate * 10).rounded() / 10
                let left = part.total.map { (Double(max(0, $0 - part.done)) / rate).rounded() }
                secondsLeft = left.flatMap { $0 <= Self.mostSeconds ? $0 : nil }
            }

            /// More than a year is no forecast.
            private static let mostSeconds: Double = 365 * 86_400

            func text(_ word: String) -> String? {
                guard done > 0 || total ?? 0 > 0 else { return nil }
                var text = "\(word) \(done)" + (total.map { $0 > done ? " of \($0)" : "" } ?? "")
                if let rate { text += ", \(rate.whole) a second" }
                if let secondsLeft, secondsLeft > 0 { text += ", \(secondsLeft.asTimeLeft) left" }
                return text
            }
        }

        var sent, received: Part
        var table: String?

        /// - Parameter first: what was told first: what was done before says nothing about this stretch's rate.
        init(_ progress: SyncProgress, since first: SyncProgress, after seconds: Double) {
            sent = Part(progress.sent, since: first.sent, after: seconds)
            received = Part(progress.received, since: first.received, after: seconds)
            table = progress.entity
        }

        /// The line for a person; `nil` where there is nothing to tell.
        var text: String? {
            let parts = [sent.text("sent"), received.text("received"), table.map { "table \($0)" }].compactMap { $0 }
            return parts.isEmpty ? nil : parts.joined(separator: " · ")
        }
    }

    extension ProgressLine {
        /// Measures the rate of each stretch of work: a rest between two of them is nobody's time.
        struct Pace: Hashable {
            private var first: SyncProgress?
            private var begin = 0.0
            private var last: SyncProgress?

            /// - Parameter seconds: when it was told, by any clock.
            mutating func line(_ progress: SyncProgress, at seconds: Double) -> ProgressLine {
                let isNew = last.map { last in
                    (progress.isBusy && !last.isBusy) || progress.sent.done < last.sent.done
                        || progress.received.done < last.received.done
                }
                if isNew ?? true { (first, begin) = (progress, seconds) }
                last = progress
                return ProgressLine(progress, since: first ?? progress, after: seconds - begin)
            }
        }

        /// Tells the progress while a sync runs: over one line of a terminal, or line by line where it was asked for.
        final class Teller: Sendable {
            private let task: Task<Void, Never>
            private let isLive: Bool

            /// Returns `nil` where nobody is to be told.
            init?(of engine: SyncEngine, isWanted: Bool, isJSON: Bool) {
                let isLive = Console.isLive(isJSON: isJSON)
                guard isWanted || isLive else { return nil }
                self.isLive = isLive
                task = Task {
                    let start = ContinuousClock.now
                    var pace = Pace()
                    for await progress in engine.progressUpdates {
                        if Task.isCancelled { return }
                        let line = pace.line(progress, at: (ContinuousClock.now - start) / .seconds(1))
                        guard let text = line.text else { continue }
                        if isLive {
                            Console.overwrite(text)
                        } else {
                            Console.note(isJSON ? (try? JSON.text(line)) ?? "" : text)
                        }
                    }
                }
            }

            /// Ends it, and takes the line off the terminal.
            func end() {
                guard !task.isCancelled else { return }
                task.cancel()
                if isLive { Console.overwrite(nil) }
            }
        }
    }

    extension Double {
        /// `40 s`, `12 min`, `3 h`: of seconds.
        var asTimeLeft: String {
            if self < 100 { return "\(whole) s" }
            return self < 6000 ? "\((self / 60).whole) min" : "\((self / 3600).whole) h"
        }

        /// The nearest integer, or the highest there is.
        fileprivate var whole: Int { Int(exactly: rounded()) ?? .max }
    }
#endif
