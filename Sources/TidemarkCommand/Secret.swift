#if Server
    import Foundation

    /// The key that tokens are signed with. It never comes from a flag, is never logged, and has no default.
    enum Secret {
        static let minimumBytes = 32
        /// Fewer different bytes than this are a key on a keyboard, not a secret.
        private static let minimumVariety = 8
        private static let placeholders = ["changeme", "change-me", "change_me", "your-secret", "password", "example"]

        /// Finds the secret: the environment, a key file, or, for a server that only this machine can reach, one that
        /// is made and kept beside the store.
        ///
        /// - Parameter mayMake: whether a secret is made where none is kept beside the store. A token that is signed
        ///   with one that no server has opens nothing.
        static func resolve(
            _ settings: Settings, store: StoreAddress?, isLoopback: Bool, mayMake: Bool = true
        ) throws -> [UInt8] {
            if let text = settings.secret { return try check(Array(text.utf8), from: "TIDEMARK_SECRET") }
            if let path = settings[.secretFile] { return try read(path) }
            guard isLoopback, let beside = store?.path else {
                throw Failure(
                    isLoopback
                        ? "no secret is set, and no store in a file beside which one could be kept"
                        : "a server that other machines can reach needs a secret of its own",
                    hint: "set TIDEMARK_SECRET to at least \(minimumBytes) random bytes, or name a key file with "
                        + "--secret-file; `openssl rand -base64 48` makes one")
            }
            let path = beside + ".secret"
            if FileManager.default.fileExists(atPath: path) { return try read(path) }
            guard mayMake else {
                throw Failure(
                    "no secret is kept beside \(beside): \(path) does not exist",
                    hint:
                        "check the path; `tidemark serve` makes the secret when it first runs, --make-secret makes it "
                        + "now, and --secret-file names one that is kept elsewhere")
            }
            return try make(path)
        }

        static func read(_ path: String) throws -> [UInt8] {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw Failure("the secret file \(path) cannot be read", hint: "check the path and its permissions")
            }
            var bytes = [UInt8](data)
            while let last = bytes.last, last == 0x0a || last == 0x0d { bytes.removeLast() }
            return try check(bytes, from: path)
        }

        static func check(_ bytes: [UInt8], from source: String) throws -> [UInt8] {
            let remedy = "`openssl rand -base64 48` makes a good one"
            guard bytes.count >= minimumBytes else {
                throw Failure(
                    "the secret from \(source) has \(bytes.count) bytes; at least \(minimumBytes) are needed",
                    hint: remedy)
            }
            let text = String(decoding: bytes, as: UTF8.self).lowercased()
            guard Set(bytes).count >= minimumVariety, !placeholders.contains(where: text.contains) else {
                throw Failure("the secret from \(source) looks like a placeholder", hint: remedy)
            }
            return bytes
        }

        /// Makes a secret that only its owner can read, and does not take over a file that came up meanwhile.
        private static func make(_ path: String) throws -> [UInt8] {
            let random = Data((0..<48).map { _ in UInt8.random(in: .min ... .max) })
            let text = Array(random.base64EncodedString().utf8)
            let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY, 0o600)
            if descriptor < 0, errno == EEXIST { return try read(path) }
            guard descriptor >= 0 else {
                throw Failure("the secret file \(path) cannot be made", hint: "check the folder's permissions")
            }
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            try handle.write(contentsOf: Data(text + [0x0a]))
            try handle.synchronize()
            return text
        }
    }
#endif
