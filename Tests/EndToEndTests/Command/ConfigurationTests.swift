#if Server
    import Foundation
    import TidemarkHummingbird
    import TidemarkServer
    import Testing

    @testable import TidemarkCommand

    /// `tidemark.yaml` and the rest of what can be set: a mistake stops the start, and says where it is.
    @Suite struct ConfigurationTests {
        private func file(_ text: String) throws -> ServerFile { try ServerFile(text: text, path: "tidemark.yaml") }

        private func complaint(_ text: String) -> String {
            do {
                _ = try file(text)
                return "none"
            } catch { return "\(error)" }
        }

        private var bookmarks: EntityPath {
            var bookmarks = EntityPath("bookmarks", of: "bookmark")
            (bookmarks.scope, bookmarks.id, bookmarks.updatedAt) = ("user:{sub}", "clientBookmarkId", "changedAt")
            bookmarks.event = "bookmarks_changed"
            bookmarks.members = [
                "url": .init("href"), "tags": .init("tags", as: .json), "is_read": .init("isRead", as: .boolean),
            ]
            return bookmarks
        }

        @Test("Everything that can be set is read from the file")
        func everything() throws {
            let file = try file(
                """
                strict: true
                retention: 30d
                forgetDevicesAfter: 60d
                listen: 127.0.0.1:9090
                store: sqlite:/var/lib/tidemark/sync.sqlite
                partitions: 16
                secretFile: /etc/tidemark.key
                limits: {page: 100, maximumPage: 1000, operations: 50, bodyBytes: 1048576, recordBytes: 65536,
                         firstRequestTimeout: 5s, idleTimeout: 30s, writeTimeout: 15s, connections: 64,
                         unsentBytes: 1048576, streams: 32, streamsPerPrincipal: 2, streamScopes: 5,
                         windowBytes: 2097152, keptPageBytes: 0, requestsPerSecond: 0, scopesPerPrincipal: 7,
                         deltaHeaderBytes: 4096, socketBytes: 8192, socketFrames: 7, socketPings: 3}
                snapshots: {shared: {delay: 5m}}
                entities:
                  task: {kind: state, conflict: mergeFields, priority: 0, defaults: {state: open, "code": "7", rank: 7},
                         patch: [body]}
                  card: {conflict: lastEditWins, deletes: lose}
                  contract: {conflict: manual, deletes: win}
                  profile: {direction: pull, conflict: lastWriteWins}
                  bookmark: {serverFields: [summary, tags], brake: true}
                  "Order Details": {brake: {rows: 20, window: 15m}}
                  naïve: {brake: false}
                  order: {ids: server}
                  audit: {kind: events}
                paths:
                  bookmarks:
                    entity: bookmark
                    scope: user:{sub}
                    id: clientBookmarkId
                    updatedAt: changedAt
                    event: bookmarks_changed
                    members: {url: href, tags: {form: json}, is_read: {name: isRead, form: boolean}}
                  notes: {}
                """)
            #expect(file.paths == [bookmarks, EntityPath("notes")])
            #expect(file.limits.deltaHeaderBytes == 4096)
            #expect(file.isStrict)
            #expect(file.configuration.retention == .seconds(30 * 86_400))
            #expect(file.configuration.deviceRetention == .seconds(60 * 86_400))
            #expect(file.configuration.sharedPageDelay == .seconds(300))
            #expect(file.settings[.listen] == "127.0.0.1:9090")
            #expect(file.settings[.partitions] == "16")
            #expect(file.settings[.secretFile] == "/etc/tidemark.key")
            #expect(file.limits.operations == 50)
            #expect(file.limits.streams == 32)
            #expect((file.limits.windowBytes, file.limits.keptPageBytes) == (2 << 20, 0))
            #expect(file.limits.streamsPerPrincipal == 2)
            #expect(file.limits.streamScopes == 5)
            #expect(file.limits.requestsPerSecond == 0)
            #expect(file.limits.scopesPerPrincipal == 7)
            #expect(file.serverLimits.idleTimeout == .seconds(30))
            let connections = file.serverLimits
            #expect((connections.firstRequestTimeout, connections.writeTimeout) == (.seconds(5), .seconds(15)))
            #expect((connections.unsentBytes, connections.socketBytes) == (1 << 20, 8192))
            #expect((connections.socketFrames, connections.socketPings) == (7, 3))
            #expect(
                file.entities == [
                    .state("task", priority: 0, defaults: ["state": "open", "code": "7", "rank": 7], patch: ["body"]),
                    .state("card", conflict: .lastEditWins, deletes: .lose),
                    .state("contract", conflict: .manual),
                    .state("profile", conflict: .lastWriteWins, direction: .pull),
                    .state("bookmark", serverFields: ["summary", "tags"], brake: DeleteBrake()),
                    .state("Order Details", brake: DeleteBrake(rows: 20, window: .seconds(15 * 60))), .state("naïve"),
                    .state("order", ids: .server),
                    .events("audit"),
                ])
        }

        @Test("Fields with attachments are read for records and for events")
        func attachments() throws {
            let file = try file(
                "entities: {task: {attachments: [photo]}, audit: {kind: events, attachments: [scan]}}")
            #expect(
                file.entities == [.state("task", attachments: ["photo"]), .events("audit", attachments: ["scan"])])
        }

        @Test("The limits of blobs are read")
        func limitsOfBlobs() throws {
            let file = try file(
                "limits: {blobBytes: 1048576, scopeBlobBytes: 8388608, blobParts: 5, blobTransfers: 6, blobRate: 100}")
            #expect((file.limits.blobBytes, file.limits.scopeBlobBytes) == (1 << 20, 8 << 20))
            #expect((file.limits.blobParts, file.limits.blobTransfers, file.serverLimits.blobRate) == (5, 6, 100))
        }

        @Test func anEmptyFileIsTheDefaults() throws {
            #expect(try file("").entities.isEmpty)
            #expect(try file("").configuration.sharedPageDelay == nil)
            #expect(try file("snapshots: {}").configuration.sharedPageDelay == nil)
            #expect(try file("").configuration.retention == .seconds(90 * 86_400))
            #expect(try file("retention: forever").configuration.retention == nil)
            #expect(try file("expireEvents: true").configuration.expiresEvents)
            #expect(try file("").configuration.deviceRetention == .seconds(90 * 86_400))
            #expect(try file("# nothing yet\n").limits == Limits())
        }

        @Test(
            "A mistake is told with its line, its column and what is allowed there",
            arguments: [
                ("strict: maybe", "1:9", "true or false"),
                ("stict: true", "1:1", "allowed here: strict"),
                ("strict: true\nstrict: false", "1:1", "given twice"),
                ("secret: abc", "1:1", "TIDEMARK_SECRET"),
                ("retention: soon", "1:12", "30d"),
                ("forgetDevicesAfter: never", "1:21", "30d"),
                ("listen: here", "1:9", "HOST:PORT"),
                ("partitions: 300", "1:13", "from 0 to 32"),
                ("limits:\n  page: 0", "2:9", "from 1 to"),
                ("limits:\n  pages: 1", "2:3", "allowed here: page"),
                ("limits: {page: 10, maximumPage: 5}", "1:16", "larger than the largest"),
                ("limits: {recordBytes: 2048, bodyBytes: 1024}", "1:23", "does not fit"),
                ("entities: [task]", "1:11", "mapping"),
                ("snapshots: {shared: {}}", "1:21", "delay: 5m"),
                ("snapshots: {share: {}}", "1:13", "allowed here: shared"),
                ("snapshots: {shared: {delay: 2h}}", "1:29", "from 1s to 1h"),
                ("snapshots: {shared: {delay: soon}}", "1:29", "a time such as"),
                ("webhooks: [a]", "1:11", "mapping"), ("webhooks: {\"a b\": {}}", "1:12", "cannot be a webhook's name"),
                ("webhooks: {a: {}}", "1:15", "needs a `url`"),
                ("webhooks: {a: {url: x}}", "1:21", "https://HOST/PATH"),
                ("webhooks: {a: {url: \"http://example.org/x\"}}", "1:21", "has to begin with https://"),
                ("webhooks: {a: {url: \"http://127.0.0.1.example.org/x\"}}", "1:21", "has to begin with https://"),
                ("webhooks: {a: {url: \"ftp://127.0.0.1/x\"}}", "1:21", "https://HOST/PATH"),
                ("webhooks: {a: {url: \"https://ada:hush@example.org/\"}}", "1:21", "a name or a password"),
                ("webhooks: {a: {url: \"https://example.org/\"}}", "1:15", "secretFile"),
                ("webhooks: {a: {url: \"https://h/\", secret: abc}}", "1:35", "never from this file"),
                ("webhooks: {a: {url: \"https://h/\", secretFile: k, secretVariable: K}}", "1:15", "one of them only"),
                (
                    "webhooks:\n  a: {url: https://h/, secretFile: k, scopes: [\"a b\"]}", "2:47",
                    "neither a scope's name"
                ),
                ("webhooks:\n  a: {url: https://h/, secretFile: k, scopes: []}", "2:47", "1 to 100"),
                ("webhooks:\n  a: {url: https://h/, secretFile: k, from: 7}", "2:45", "now, start"),
                ("webhooks:\n  a: {url: https://h/, secretFile: k, timeout: 5m}", "2:48", "from 1s to 60s"),
                ("limits: {deltaHeaderBytes: 99999}", "1:28", "from 64 to"),
                ("paths: [a]", "1:8", "mapping"), ("paths: {sync: {}}", "1:9", "are taken"),
                ("paths: {Rest: {}}", "1:9", "are taken"), ("paths: {a/b: {}}", "1:9", "without a slash"),
                ("paths:\n  a: {entity: \" x\"}", "2:15", "not an entity's name"),
                ("paths:\n  a: {scope: \"a b\"}", "2:14", "not a scope's name"),
                ("paths:\n  a: {event: \"x y\"}", "2:14", "letters"),
                ("paths:\n  a: {members: {x: y, z: y}}", "2:26", "two fields"),
                ("paths:\n  a: {members: {x: {form: hex}}}", "2:27", "boolean"),
                ("entities:\n  \" task\": {}", "2:3", "not an entity's name"),
                ("entities:\n  task: {kind: thing}", "2:16", "allowed here: state, events"),
                ("entities:\n  task: {kind: state, kind: events}", "2:10", "given twice"),
                ("entities:\n  task:\n    kind: state\n    colour: red", "4:5", "allowed here: kind"),
                ("entities:\n  task: {deletes: sometimes}", "2:19", "win, lose"),
                ("entities:\n  audit: {kind: events, deletes: lose}", "2:34", "says nothing about events"),
                ("entities:\n  task: {conflict: best}", "2:20", "mergeFields, lastWriteWins"),
                ("entities:\n  task: {priority: high}", "2:20", "a number from 0 to 99"),
                ("entities:\n  task: {defaults: {done: true}}", "2:27", "write 1 or 0"),
                ("entities:\n  task: {ids: both}", "2:15", "client, server"),
                ("entities:\n  log: {kind: events, ids: server}", "2:28", "only appended"),
                ("entities:\n  log: {kind: events, patch: [a]}", "2:30", "only appended"),
                ("entities:\n  log: {kind: events, brake: true}", "2:30", "only appended"),
                ("entities:\n  task: {brake: 100}", "2:17", "true or false"),
                ("entities:\n  task: {brake: {rows: 0}}", "2:24", "a number from 1"),
                ("entities:\n  task: {brake: {window: 1s}}", "2:26", "from 1m to 30d"),
                ("entities:\n  task: {brake: {row: 1}}", "2:18", "rows, window"),
                ("entities:\n  task: {}\n  tAsk: {}", "3:3", "one entity"),
                ("entities:\n  \" task\": {}", "2:3", "no blank"),
                ("entities:\n  log: {kind: events, serverFields: [a]}", "2:37", "only appended"),
                ("entities:\n  log: {kind: events, conflict: mergeFields}", "2:33", "only appended"),
                ("entities:\n  task: {direction: up}", "2:21", "both, pull, push"),
                ("entities:\n  task: {serverFields: summary}", "2:24", "list"),
                ("entities:\n  task: {attachments: photo}", "2:23", "list"),
                ("entities:\n  task: {attachments: [photo, Photo]}", "2:23", "are one field"),
                ("entities:\n  task: {patch: [photo], attachments: [Photo]}", "2:39", "leave it out of `patch`"),
                ("entities:\n  task: {defaults: {photo: x}, attachments: [photo]}", "2:45", "cannot have a default"),
                ("entities: {task: {kind: state}", "2:1", "expected"),
            ])
        func mistakes(text: String, place: String, remark: String) {
            let complaint = complaint(text)
            #expect(complaint.hasPrefix("error: tidemark.yaml:\(place): "), "\(complaint)")
            #expect(complaint.contains(remark), "\(complaint)")
        }

        @Test func flagsBeatTheEnvironmentAndThatBeatsTheFile() throws {
            let folder = try TemporaryFolder()
            let path = folder.path("tidemark.yaml")
            try "listen: 127.0.0.1:1\nstore: sqlite:file\nlogLevel: debug\n".write(
                toFile: path, atomically: true, encoding: .utf8)
            let settings = try Settings(
                flags: [.listen: "127.0.0.1:3", .store: nil],
                environment: [
                    "TIDEMARK_LISTEN": "127.0.0.1:2", "TIDEMARK_STORE": "sqlite:environment", "TIDEMARK_CONFIG": path,
                    "TIDEMARK_SECRET_FILE": "/key",
                ])
            #expect(settings[.listen] == "127.0.0.1:3")
            #expect(settings[.store] == "sqlite:environment")
            #expect(settings[.logLevel] == "debug")
            #expect(settings[.secretFile] == "/key")
        }

        @Test(
            "An address is loopback where nobody else can reach it, whatever its name looks like",
            arguments: [
                ("127.0.0.1:0", true), ("127.8.8.8:80", true), ("localhost:80", true), ("[::1]:80", true),
                ("0.0.0.0:80", false), ("[::]:80", false), ("example.org:80", false), ("127.0.0.1.evil.org:80", false),
                ("127.evil:80", false),
            ])
        func loopback(address: String, isLoopback: Bool) throws {
            #expect(try ListenAddress(address).isLoopback == isLoopback)
        }

        @Test(
            "An address without a host or a port in range is refused",
            arguments: ["", "8080", "host", "host:", ":80", "::1:80", "host:99999", "host:-1"])
        func badAddresses(address: String) {
            #expect(throws: Failure.self) { try ListenAddress(address) }
        }
    }
#endif
