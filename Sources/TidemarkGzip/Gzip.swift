import CZlib

/// gzip (RFC 1952) over the system's zlib, with a bound on what may come out.
package enum Gzip {
    package enum Failure: Error, Hashable, Sendable {
        /// The bytes are not gzip, or were cut or altered on the way.
        case corrupt
        /// More would come out than the caller takes.
        case tooLarge(limit: Int)
    }

    /// zlib's fastest level: on small pages it gives nine tenths of the best ratio at a fifth of the time.
    package static let fast: Int32 = 1
    /// zlib's usual level, for what is kept.
    package static let thorough: Int32 = 6
    /// The largest window, with a gzip header and trailer.
    private static let windowBits: Int32 = 15 + 16
    /// Below this size the header costs more than compression gains.
    package static let threshold = 512

    package static func compress(_ bytes: [UInt8], level: Int32 = fast) -> [UInt8] {
        var stream = z_stream()
        guard
            deflateInit2_(
                &stream, level, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { preconditionFailure("zlib is out of memory") }
        defer { deflateEnd(&stream) }
        let bound = Int(deflateBound(&stream, UInt(bytes.count)))
        return [UInt8](unsafeUninitializedCapacity: bound) { output, count in
            bytes.withUnsafeBufferPointer { input in
                // zlib does not write through next_in; its C signature only lacks the const.
                stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                let status = deflate(&stream, Z_FINISH)
                precondition(status == Z_STREAM_END, "deflateBound promised enough room")
            }
            count = Int(stream.total_out)
        }
    }

    /// The size that a gzip member says it has when it is inflated (RFC 1952, 2.3.1: ISIZE); 0 for what is none.
    package static func announcedSize(_ bytes: [UInt8]) -> Int {
        bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// Inflates one gzip member and refuses anything behind it.
    package static func decompress(_ bytes: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
        var stream = z_stream()
        guard inflateInit2_(&stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { preconditionFailure("zlib is out of memory") }
        defer { inflateEnd(&stream) }
        var result: [UInt8] = []
        result.reserveCapacity(min(limit, bytes.count * 4))
        var status = Z_OK
        bytes.withUnsafeBufferPointer { input in
            stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
            stream.avail_in = UInt32(input.count)
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 << 16) { chunk in
                repeat {
                    stream.next_out = chunk.baseAddress
                    stream.avail_out = UInt32(chunk.count)
                    status = inflate(&stream, Z_NO_FLUSH)
                    result.append(contentsOf: chunk[..<(chunk.count - Int(stream.avail_out))])
                } while status == Z_OK && result.count <= limit
            }
        }
        guard result.count <= limit else { throw .tooLarge(limit: limit) }
        guard status == Z_STREAM_END, stream.avail_in == 0 else { throw .corrupt }
        return result
    }
}
