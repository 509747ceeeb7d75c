#if Server
    import Foundation
    import TidemarkSQLite

    /// `sqlite:PATH`.
    struct StoreAddress: Hashable {
        let path: String

        init(_ text: String?) throws {
            let forms = "--store sqlite:PATH, TIDEMARK_STORE or `store:` in the configuration file"
            guard let text else { throw Failure("no store is named", hint: "name one with \(forms)") }
            guard text.hasPrefix("sqlite:"), text.utf8.count > 7 else {
                throw Failure("'\(text)' is not a store that this server has", hint: "name one with \(forms)")
            }
            path = String(text.dropFirst(7))
        }

        /// A mistyped folder should be heard of at the start, not found out from a server that began from nothing.
        func checkFolder() throws {
            let folder = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
                throw Failure("the store's folder \(folder) does not exist", hint: "make it: mkdir -p '\(folder)'")
            }
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
                return
            }
            throw Failure("\(path) is a folder", hint: "name a file in it, for example sqlite:\(path)/sync.sqlite")
        }

        /// A command that only tends a store does not make one.
        func checkFile() throws {
            try checkFolder()
            guard FileManager.default.fileExists(atPath: path) else {
                throw Failure("the store \(path) does not exist", hint: "check the path; `tidemark serve` makes it")
            }
        }

        func open() throws -> SQLiteStore {
            do {
                return try SQLiteStore(path: path)
            } catch {
                throw Failure(
                    "the store \(path) cannot be opened", because: error,
                    hint: "check that the file is a Tidemark store and may be written")
            }
        }
    }
#endif
