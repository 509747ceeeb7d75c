package import Foundation

extension Date {
    /// - Parameter milliseconds: since 1970, as the file and the wire keep a moment.
    package init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// Milliseconds since 1970, to the nearest. A moment that no `Int64` holds becomes the outermost that one does:
    /// a server may send any number. Up to the year 70,000 a number of milliseconds comes back as it was.
    package var milliseconds: Int64 {
        let rounded = (timeIntervalSince1970 * 1000).rounded()
        return Int64(exactly: rounded) ?? (rounded > 0 ? .max : .min)
    }
}
