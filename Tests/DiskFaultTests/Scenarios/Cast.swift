import Tidemark
import TidemarkServer
import TidemarkWire

/// What a scenario is played with: the app's schema, the tables that are synced, and what the operator declared.
struct Cast: Sendable {
    var schema = Cast.tasks
    var tables: [SyncedTable] = [.table("project", scope: Cast.rule), .table("task", scope: Cast.rule)]
    /// What is compared in the end, per table: a query without ids that differ from run to run.
    var queries = [
        "SELECT id, w, name FROM project", "SELECT id, w, project, title, body, rank, slug FROM task",
    ]
    var entities: [EntityDeclaration] = [.state("task", patch: ["body"])]
    var rules: [EntityRule] = []
    var limits = Limits()
    var scopes: [Scope] = ["w:a"]
    var page = 3
    var retention: Duration?
    var deviceRetention: Duration = .seconds(90 * 86_400)
    /// An engine that hardly waits between attempts.
    var isHasty = false

    static let rule = SyncedTable.ScopeRule.column("w", prefix: "w:")

    static let tasks = """
        CREATE TABLE project (id TEXT PRIMARY KEY, w TEXT, name TEXT);
        CREATE TABLE task (
            id TEXT PRIMARY KEY, w TEXT, project TEXT REFERENCES project(id) ON DELETE CASCADE, title TEXT, body TEXT,
            rank INTEGER, slug TEXT UNIQUE);
        """

    /// Two scopes on each device.
    static let spread: Cast = {
        var cast = Cast()
        cast.scopes = ["w:a", "w:b"]
        return cast
    }()

    /// Entries that are only added to.
    static let events: Cast = {
        var cast = Cast()
        cast.schema = "CREATE TABLE audit (id TEXT PRIMARY KEY, w TEXT, what TEXT);"
        cast.tables = [.table("audit", scope: rule)]
        cast.queries = ["SELECT id, w, what FROM audit"]
        cast.entities = [.events("audit")]
        return cast
    }()

    /// Records whose ids the server makes.
    static let tickets: Cast = {
        var cast = Cast()
        cast.schema = """
            CREATE TABLE ticket (id INTEGER PRIMARY KEY, w TEXT, title TEXT, parent INTEGER REFERENCES ticket(id));
            """
        cast.tables = [.table("ticket", scope: rule)]
        cast.queries = ["SELECT t.w, t.title, p.title FROM ticket t LEFT JOIN ticket p ON p.id = t.parent"]
        cast.entities = [.state("ticket", ids: .server)]
        return cast
    }()

    /// A server that refuses projects without a name.
    static let strict: Cast = {
        var cast = Cast()
        cast.rules = [
            EntityRule("project") { edit in
                edit.proposed["name"] == "" ? .reject(code: "name_missing", detail: "It needs a name.") : .accept
            }
        ]
        return cast
    }()

    /// Two casts on one stage.
    static func tasks(and other: Cast) -> Cast {
        Cast().with {
            $0.schema += other.schema
            $0.tables += other.tables
            $0.queries += other.queries
            $0.entities = other.entities
        }
    }

    /// A server that resolves conflicts of tasks in another way.
    static func resolving(_ conflict: ConflictPolicy, _ deletes: DeletePolicy = .win) -> Cast {
        var cast = Cast()
        cast.entities = [.state("task", conflict: conflict, deletes: deletes)]
        return cast
    }

    /// The same with this changed.
    func with(_ change: (inout Cast) -> Void) -> Cast {
        var cast = self
        change(&cast)
        return cast
    }

    var configuration: SyncConfiguration {
        var configuration = SyncConfiguration()
        configuration.pageRange = page...page
        configuration.firstPage = page
        configuration.snapshotRange = page...page
        configuration.firstSnapshotPage = page
        configuration.operationLimit = 4
        guard isHasty else { return configuration }
        (configuration.backoff.base, configuration.backoff.jitter) = (.milliseconds(1), .zero)
        (configuration.tick, configuration.longestWait) = (.milliseconds(20), .milliseconds(20))
        (configuration.pollInterval, configuration.breakerCoolDown) = (.milliseconds(20), .milliseconds(20))
        return configuration
    }
}
