import CBrotli

/// Brotli (RFC 7932) over the system's encoder. The server answers with it; nobody sends it.
package enum Brotli {
    /// Smaller than gzip's usual level and faster than its fastest, on pages
    /// (Documentation/Decisions/0011-brotli-for-answers.md).
    private static let quality: Int32 = 3
    /// 256 KiB: a wider window finds nothing more in a page, and costs memory for each answer under way.
    private static let windowBits: Int32 = 18

    /// - Returns: `nil` where the encoder gives up, for want of memory.
    package static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        let bound = BrotliEncoderMaxCompressedSize(bytes.count)
        guard bound > 0 else { return nil }
        var isDone = false
        let packed = [UInt8](unsafeUninitializedCapacity: bound) { output, count in
            count = bound
            isDone =
                bytes.withUnsafeBufferPointer { input in
                    BrotliEncoderCompress(
                        quality, windowBits, BROTLI_MODE_TEXT, input.count, input.baseAddress, &count,
                        output.baseAddress)
                } != 0
            if !isDone { count = 0 }
        }
        return isDone ? packed : nil
    }
}
