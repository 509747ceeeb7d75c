public import GRDB
public import Tidemark
public import TidemarkServer
public import TidemarkWire

/// An app as a simulation knows it: its schema, what its users do, and how its server is set up.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
public struct SimulatedApp: Sendable {
    /// Something that the app or its user does, in one write transaction.
    public struct Act: Sendable {
        /// What it is called in scripts: one word.
        public var name: String
        /// Whether its edits belong together, as those of ``SyncEngine/atomically(_:)``.
        public var isGroup: Bool
        let perform: @Sendable (Database, inout Choices) throws -> Void
        /// Bytes that the app adds before, and what it does with their reference.
        let adding: Adding?

        struct Adding: Sendable {
            let bytes: @Sendable (inout Choices) -> [UInt8]
            let perform: @Sendable (Database, inout Choices, BlobReference) throws -> Void
        }

        /// Makes an act.
        ///
        /// - Parameters:
        ///   - name: what it is called in scripts: one word, without blanks.
        ///   - isGroup: whether its edits belong together: on the server all of them are taken, or none.
        ///   - perform: does it, on the queue of the device's file. It may draw from the choices, and from nothing else
        ///     that is random. A write that the schema refuses (`SQLITE_CONSTRAINT`) is undone and forgiven;
        ///     any other error fails the simulation.
        public init(
            _ name: String, isGroup: Bool = false,
            _ perform: @escaping @Sendable (Database, inout Choices) throws -> Void
        ) {
            self.name = name
            self.isGroup = isGroup
            self.perform = perform
            adding = nil
        }

        /// Makes an act that adds the bytes of an attachment, and then writes their reference.
        ///
        /// - Parameters:
        ///   - name: what it is called in scripts: one word, without blanks.
        ///   - bytes: makes the bytes, of the choices alone, on the world's own thread.
        ///   - perform: writes the reference, in a transaction as that of any act.
        public init(
            _ name: String, adding bytes: @escaping @Sendable (inout Choices) -> [UInt8],
            _ perform: @escaping @Sendable (Database, inout Choices, BlobReference) throws -> Void
        ) {
            self.name = name
            isGroup = false
            self.perform = { _, _ in }
            adding = Adding(bytes: bytes, perform: perform)
        }
    }

    /// Something that must hold on every device, whenever nobody is writing.
    public struct Invariant: Sendable {
        /// What it says, for the report.
        public var name: String
        let holds: @Sendable (Database) throws -> Bool

        /// Makes an invariant from a question to the database, which is asked on the queue of the device's file.
        public init(_ name: String, holds: @escaping @Sendable (Database) throws -> Bool) {
            self.name = name
            self.holds = holds
        }
    }

    /// Makes the app's schema in an empty file, on the file's queue: its migrations.
    public var migrate: @Sendable (Database) throws -> Void
    /// The tables in sync.
    public var tables: [SyncedTable]
    /// The scopes that every device follows.
    public var scopes: [Scope]
    /// What users do.
    public var acts: [Act]
    /// The scopes, and the sub-scopes of the tables in each: all that a device has checkpoints of.
    var parts: [Scope] {
        scopes.flatMap { scope in
            [scope] + Set(tables.compactMap(\.subscope)).sorted().compactMap { scope.appending(subscope: $0) }
        }
    }
    /// What must hold on every device at any moment.
    public var invariants: [Invariant] = []
    /// What must hold on every device once all of them are in sync. It is not asked where the server has lost its
    /// history twice: of what was written together and lost in two histories, a part may come back.
    public var finalInvariants: [Invariant] = []
    /// Decides conflicts of entities whose policy is `manual`.
    public var onConflict: ConflictHandler?
    /// What the operator declares of the entities.
    public var entities: [EntityDeclaration] = []
    /// The operator's own rules.
    public var rules: [EntityRule] = []
    /// Tables that acts rebuild, rename or drop, or whose triggers they drop, each with the columns that it may come to
    /// have beside those that `migrate` gives it. They are nullable, and have no defaults.
    package var migrating: [String: [String]] = [:]
    /// What the app does to its file whenever it starts, before it makes its engine.
    package var atStart: (@Sendable (Database) throws -> Void)?
    /// Tables that `migrate` puts rows into.
    package var seeded: Set<String> = []
    /// Tables with keys that no record id can be made of.
    package var oddlyKeyed: Set<String> = []

    /// Makes an app.
    ///
    /// - Parameters:
    ///   - tables: the tables in sync.
    ///   - scopes: the scopes that every device follows.
    ///   - acts: what users do; at least one.
    ///   - migrate: makes the app's schema in an empty file, on the file's queue.
    public init(
        tables: [SyncedTable], scopes: [Scope], acts: [Act], migrate: @escaping @Sendable (Database) throws -> Void
    ) {
        self.migrate = migrate
        self.tables = tables
        self.scopes = scopes
        self.acts = acts
    }
}

/// What an act picks from: the same choices after the same seed, so that a world can be played again.
public struct Choices: RandomNumberGenerator, Sendable {
    private var generator: SplitMix64
    /// A number that no other act of the world has: what is written with it can be told from all else.
    public let serial: Int
    /// The number of the device on which the act is done, from 0.
    public let device: Int

    init(seed: UInt64, serial: Int, device: Int) {
        generator = SplitMix64(seed: seed)
        self.serial = serial
        self.device = device
    }

    /// Random bits.
    public mutating func next() -> UInt64 { generator.next() }

    /// One of a range.
    public mutating func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }

    /// One of several; the array must not be empty.
    public mutating func pick<Element>(_ elements: [Element]) -> Element { elements[pick(0..<elements.count)] }

    /// True so many times of a hundred.
    public mutating func chance(_ percent: Int) -> Bool { pick(0..<100) < percent }
}
