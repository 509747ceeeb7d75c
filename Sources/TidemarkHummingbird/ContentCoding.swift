#if Server
    import TidemarkBrotli
    import TidemarkGzip

    /// How an answer's body travels (RFC 9110, 8.4.1).
    enum ContentCoding: String, CaseIterable {
        case identity, gzip
        case brotli = "br"

        /// The coding for a body: the one that the caller takes and weighs most, where it pays.
        init(of body: [UInt8], accepting header: String?) {
            self = body.count >= Gzip.threshold ? Self.preferred(header) : .identity
        }

        /// The mark of the body's coding at the end of an entity tag: another form has other bytes.
        var tagMark: String { self == .identity ? "" : "-\(rawValue)" }

        /// An entity tag without the mark of a coding.
        static func unmarked(_ tag: String) -> String {
            let mark = allCases.lazy.map(\.tagMark).first { !$0.isEmpty && tag.hasSuffix($0) }
            return String(tag.dropLast(mark?.count ?? 0))
        }

        /// - Returns: `nil` where the body has to go as it is after all.
        func encode(_ body: [UInt8]) -> [UInt8]? {
            switch self {
            case .identity: nil
            case .gzip: Gzip.compress(body)
            case .brotli: Brotli.compress(body)
            }
        }

        /// The coding that an `Accept-Encoding` header prefers (RFC 9110, 12.5.3). Brotli has to be asked for by name,
        /// and is preferred to gzip of the same weight: it is smaller and takes no longer.
        static func preferred(_ header: String?) -> ContentCoding {
            guard let header else { return .identity }
            var gzip: Double?
            var (brotli, anything) = (0.0, 0.0)
            for part in header.split(separator: ",") {
                let words = part.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
                let weight = words.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
                switch words.first {
                case "gzip", "x-gzip": gzip = gzip ?? weight
                case "br": brotli = weight
                case "*": anything = weight
                default: break
                }
            }
            let other = gzip ?? anything
            if brotli > 0, brotli >= other { return .brotli }
            return other > 0 ? .gzip : .identity
        }
    }
#endif
