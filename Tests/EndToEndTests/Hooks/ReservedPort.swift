#if Server
    import Foundation

    /// A port of this machine at which nobody listens, and that the system gives to nobody else meanwhile. A server
    /// that is told its number can still listen there.
    final class ReservedPort: Sendable {
        let number: Int
        private let descriptor: Int32

        init() throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var (isOn, length) = (Int32(1), socklen_t(MemoryLayout<sockaddr_in>.size))
            // The server's socket has it too; where one of them had not, the port would be taken.
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
            var address = sockaddr_in.loopback(port: 0)
            let descriptor = descriptor
            let isBound = withUnsafeMutablePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
                }
            }
            number = Int(UInt16(bigEndian: address.sin_port))
            guard isBound else { throw POSIXError(.EADDRINUSE) }
        }

        deinit { close(descriptor) }
    }

    extension sockaddr_in {
        static func loopback(port: Int) -> sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            return address
        }
    }
#endif
