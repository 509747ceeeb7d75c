#if Server
    import Foundation
    import GRDB

    /// Two tables of real records, one referring to the other, for the demo to fill a device with.
    struct DemoData: Sendable {
        /// A table: its name, its columns with the key first, and its rows.
        struct Table: Sendable {
            var name: String
            var columns: [String]
            var rows: [[String?]]

            var key: String { columns[0] }
        }

        /// Where the records come from, in a person's words.
        var origin: String
        var schema: [String]
        /// The table that is edited, and the one that refers to it.
        var parent: Table
        var child: Table

        var tables: [Table] { [parent, child] }

        /// Makes the tables in a database, empty.
        func create(_ db: Database) throws {
            for statement in schema { try db.execute(sql: statement) }
        }

        /// Fills the tables by plain SQL, in one transaction.
        func fill(_ db: Database) throws {
            for table in tables {
                let names = table.columns.map { "\"\($0)\"" }.joined(separator: ", ")
                let marks = table.columns.map { _ in "?" }.joined(separator: ", ")
                let statement = try db.makeStatement(sql: "INSERT INTO \(table.name) (\(names)) VALUES (\(marks))")
                for row in table.rows { try statement.execute(arguments: StatementArguments(row)) }
            }
        }

        /// The packages of this machine, or the countries of the world where fewer than 50 are installed.
        static func ofThisMachine(rows limit: Int) -> DemoData {
            let path = "/var/lib/dpkg/status"
            if let bytes = FileManager.default.contents(atPath: path) {
                let data = packages(String(decoding: bytes, as: UTF8.self), limit: limit)
                if data.parent.rows.count >= 50 { return data }
            }
            return countries(limit: limit)
        }

        /// As many parents and children as fit into `limit`, children only of parents that are there.
        private mutating func trim(to limit: Int) {
            guard parent.rows.count + child.rows.count > limit else { return }
            parent.rows = Array(parent.rows.prefix(max(50, limit / 3)))
            let names = Set(parent.rows.compactMap(\.first))
            child.rows = Array(
                child.rows.filter { names.contains($0[1]) && names.contains($0[2]) }
                    .prefix(max(0, limit - parent.rows.count)))
        }
    }

    // MARK: - dpkg

    extension DemoData {
        /// Reads dpkg's own database: which packages are installed, and what they depend on.
        static func packages(_ status: String, limit: Int) -> DemoData {
            var data = DemoData(
                origin: "the packages that dpkg has installed here, and what they depend on",
                schema: [
                    """
                    CREATE TABLE package (
                        name TEXT PRIMARY KEY NOT NULL, version TEXT NOT NULL, section TEXT, maintainer TEXT,
                        description TEXT, note TEXT)
                    """,
                    """
                    CREATE TABLE dependency (
                        id TEXT PRIMARY KEY NOT NULL, package TEXT NOT NULL REFERENCES package(name) ON DELETE CASCADE,
                        target TEXT REFERENCES package(name) ON DELETE SET NULL, kind TEXT NOT NULL, "constraint" TEXT)
                    """,
                    "CREATE INDEX dependency_package ON dependency(package)",
                ],
                parent: Table(
                    name: "package", columns: ["name", "version", "section", "maintainer", "description", "note"],
                    rows: []),
                child: Table(
                    name: "dependency", columns: ["id", "package", "target", "kind", "constraint"], rows: []))
            let records = stanzas(status)
            let names = Set(records.compactMap { $0["Package"] })
            for record in records {
                guard let name = record["Package"], let version = record["Version"] else { continue }
                data.parent.rows.append([
                    name, version, record["Section"], record["Maintainer"], record["Description"], nil,
                ])
                data.child.rows += dependencies(of: name, record, names)
            }
            data.trim(to: limit)
            return data
        }

        /// The stanzas of installed packages, each package once; continued lines are left out.
        private static func stanzas(_ status: String) -> [[String: String]] {
            var seen: Set<String> = []
            return status.split(separator: "\n\n").compactMap { stanza in
                var record: [String: String] = [:]
                for line in stanza.split(separator: "\n") where line.first != " " && line.first != "\t" {
                    let parts = line.split(separator: ":", maxSplits: 1)
                    guard parts.count == 2 else { continue }
                    record[String(parts[0])] = parts[1].trimmingCharacters(in: .whitespaces)
                }
                guard record["Status"]?.hasSuffix(" installed") == true, let name = record["Package"],
                    seen.insert(name).inserted
                else { return nil }
                return record
            }
        }

        /// Makes one row for each relation whose target is installed; of alternatives, the first that is.
        private static func dependencies(
            of name: String, _ record: [String: String], _ names: Set<String>
        ) -> [[String?]] {
            var rows: [String: [String?]] = [:]
            for kind in ["Pre-Depends", "Depends", "Recommends"] {
                for relation in (record[kind] ?? "").split(separator: ",") {
                    let alternatives = relation.split(separator: "|").map { alternative in
                        let parts = alternative.split(separator: "(", maxSplits: 1)
                        let target = parts[0].trimmingCharacters(in: .whitespaces).prefix { $0 != ":" }
                        let bound = parts.count > 1 ? parts[1].prefix { $0 != ")" } : nil
                        return (target: String(target), bound: bound.map(String.init))
                    }
                    guard let chosen = alternatives.first(where: { names.contains($0.target) }) else { continue }
                    let id = "\(name)|\(kind)|\(chosen.target)"
                    guard id.utf8.count <= 128 else { continue }
                    rows[id] = [id, name, chosen.target, kind.lowercased(), chosen.bound]
                }
            }
            return rows.values.sorted { ($0[0] ?? "") < ($1[0] ?? "") }
        }
    }

    // MARK: - Countries

    extension DemoData {
        /// The countries that ship with the program, and which of them share a border.
        static func countries(limit: Int) -> DemoData {
            var data = DemoData(
                origin: "the countries of the world and their borders, which ship with the program",
                schema: [
                    "CREATE TABLE country (code TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, region TEXT, note TEXT)",
                    """
                    CREATE TABLE border (
                        id TEXT PRIMARY KEY NOT NULL, country TEXT NOT NULL REFERENCES country(code) ON DELETE CASCADE,
                        neighbour TEXT REFERENCES country(code) ON DELETE SET NULL)
                    """,
                    "CREATE INDEX border_country ON border(country)",
                ],
                parent: Table(name: "country", columns: ["code", "name", "region", "note"], rows: []),
                child: Table(name: "border", columns: ["id", "country", "neighbour"], rows: []))
            for line in Countries.list.split(separator: "\n") {
                let parts = line.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
                guard parts.count == 4 else { continue }
                data.parent.rows.append([parts[0], parts[1], parts[2], nil])
                for neighbour in parts[3].split(separator: " ") {
                    data.child.rows.append(["\(parts[0])-\(neighbour)", parts[0], String(neighbour)])
                }
            }
            data.trim(to: limit)
            return data
        }
    }
#endif
