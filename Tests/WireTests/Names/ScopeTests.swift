import Testing
import TidemarkWire

@Suite("A scope's name, and its sub-scopes' (W4, W93)")
struct ScopeTests {
    @Test("names that are none", arguments: ["", "~", "w~", "~p", "w~p~q", "w~p.q", "w:1~ä", "w ~p", "w~p\n"])
    func none(name: String) { #expect(Scope(name) == nil) }

    @Test("a sub-scope knows its scope, a scope its sub-scopes")
    func parts() throws {
        let scope: Scope = "workspace:1"
        #expect(scope.subscope == nil && scope.parent == scope && scope.appending(subscope: nil) == scope)
        let media = try #require(scope.appending(subscope: "media_2-x"))
        #expect(media.name == "workspace:1~media_2-x" && media.subscope == "media_2-x" && media.parent == scope)
        #expect(media.appending(subscope: "other")?.name == "workspace:1~other")
        #expect(media.appending(subscope: nil) == scope)
        #expect(scope.appending(subscope: "a:b") == nil && scope.appending(subscope: "") == nil)
        #expect(scope.appending(subscope: String(repeating: "p", count: 32)) != nil)
        #expect(scope.appending(subscope: String(repeating: "p", count: 33)) == nil)
        let long = try #require(Scope(String(repeating: "w", count: 122)))
        #expect(long.appending(subscope: "media") != nil && long.appending(subscope: "photos") == nil)
        // All its sub-scopes stand behind this, and nothing else of the store comes between them.
        for name in ["workspace:1", "workspace:10", "workspace:1z", "workspace:1_"] {
            let other = try #require(Scope(name))
            #expect(other < scope.beforeSubscopes)
        }
        #expect(scope.beforeSubscopes < media)
    }

    @Test("a declaration says the sub-scope, and one that says none has none")
    func declared() throws {
        let declarations = Declarations(entities: [.state("photo", subscope: "media"), .events("log"), .state("task")])
        let read = try declarations.body().withUnsafeBytes { try Declarations(from: $0) }
        #expect(read == declarations)
        #expect(read.place(of: "PHOTO", in: "w:1")?.name == "w:1~media")
        #expect(read.place(of: "photo", in: "w:1~other")?.name == "w:1~media")
        #expect(read.place(of: "task", in: "w:1~media")?.name == "w:1")
        #expect(read.place(of: "unknown", in: "w:1")?.name == "w:1")
    }
}
