import Testing
import TidemarkWire

@Suite struct BlobReferenceTests {
    private static let hash = String(repeating: "0f", count: 32)

    @Test("a reference reads as it is spelled")
    func spelling() throws {
        for size in [0, 4, 20_481, BlobReference.sizeLimit] {
            let reference = try #require(BlobReference(hash: Self.hash, size: size))
            #expect(reference.description == "sha256:\(Self.hash):\(size)")
            #expect(BlobReference(reference.description) == reference)
        }
    }

    @Test(
        "any other spelling is no reference",
        arguments: [
            "", "sha256:\(hash)", "sha256:\(hash):", "sha256:\(hash):04", "sha256:\(hash):+4", "sha256:\(hash):-4",
            "sha256:\(hash):4:", "SHA256:\(hash):4", "sha256:\(hash.uppercased()):4", "sha256:\(hash.dropLast()):4",
            "sha256:\(hash)0:4", "sha256:\(hash):1099511627777", "sha256:\(hash):99999999999999999999",
            " sha256:\(hash):4", "md5:\(hash):4", "\(hash):4",
        ])
    func otherSpellings(_ text: String) {
        #expect(BlobReference(text) == nil)
    }

    @Test("a declaration tells its attachments")
    func declared() throws {
        let declarations = Declarations(entities: [
            .state("photo", attachments: ["original", "preview"]), .events("log", attachments: ["trace"]),
        ])
        #expect(try declarations.body().withUnsafeBytes { try Declarations(from: $0) } == declarations)
    }
}
