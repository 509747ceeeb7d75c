import Foundation
import Testing

/// The repository's own text files, with paths relative to its top.
enum Repository {
    struct File: Sendable {
        let path: String
        let text: String
    }

    /// Every text file that git could track: no build folders, nothing that binary data sits in.
    static let files: [File] = read(folder: "")

    /// The Swift files in these folders.
    static func swiftFiles(in folders: [String]) -> [File] {
        files.filter { file in
            file.path.hasSuffix(".swift") && folders.contains { file.path.hasPrefix($0 + "/") }
        }
    }

    /// The faults that one rule finds in the Swift files of these folders.
    static func faults(in folders: [String], rule: (_ path: String, _ text: String) -> [Fault]) -> [Fault] {
        swiftFiles(in: folders).flatMap { rule($0.path, $0.text) }
    }

    private static let top = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// What .gitignore names as well.
    private static func isIgnored(_ name: String) -> Bool {
        name.hasPrefix(".build") || name.hasSuffix(".xcodeproj")
            || [".git", ".swiftpm", ".DS_Store", "Package.resolved"].contains(name)
    }

    private static func read(folder: String) -> [File] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: top.path + "/" + folder)) ?? []
        var found: [File] = []
        for name in names.sorted() where !isIgnored(name) {
            let path = folder.isEmpty ? name : folder + "/" + name
            let place = top.appending(path: path)
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: place.path, isDirectory: &isFolder) else { continue }
            if isFolder.boolValue {
                found += read(folder: path)
            } else if let text = try? String(contentsOf: place, encoding: .utf8) {
                found.append(File(path: path, text: text))
            }
        }
        return found
    }
}

@Suite("The repository is found")
struct RepositoryTests {
    /// Without this, a wrong top folder would make every rule pass on nothing at all.
    @Test("The scan reaches the manifest, this file and the sources, and no build folder")
    func scanReachesTheFiles() {
        let paths = Set(Repository.files.map(\.path))
        #expect(paths.contains("Package.swift"))
        #expect(paths.contains("Tests/TidyTests/Reading/Repository.swift"))
        #expect(paths.contains(".ci/run"))
        #expect(Repository.swiftFiles(in: ["Sources"]).count > 10)
        #expect(!paths.contains { $0.hasPrefix(".build") || $0.hasPrefix(".git/") })
    }
}
