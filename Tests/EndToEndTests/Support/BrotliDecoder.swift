#if Server
    import CBrotliDecoder

    /// The other end of the server's Brotli; nothing in the project reads it.
    enum BrotliDecoder {
        struct Corrupt: Error {}

        static func decompress(_ bytes: [UInt8], limit: Int) throws -> [UInt8] {
            var status = BROTLI_DECODER_RESULT_ERROR
            let result = [UInt8](unsafeUninitializedCapacity: limit) { output, count in
                count = limit
                status = bytes.withUnsafeBufferPointer {
                    BrotliDecoderDecompress($0.count, $0.baseAddress, &count, output.baseAddress)
                }
            }
            guard status == BROTLI_DECODER_RESULT_SUCCESS else { throw Corrupt() }
            return result
        }
    }
#endif
