#if Server
    import ArgumentParser

    /// A result for people, line by line, and for programs.
    protocol Report: Encodable {
        var lines: [String] { get }
    }

    /// How a command tells its result.
    struct ReportOptions: ParsableArguments {
        @Flag(help: "Report as JSON.")
        var json = false

        func tell(_ report: some Report) throws {
            if json { Console.line(try JSON.text(report)) } else { report.lines.forEach(Console.line) }
        }

        func tell(_ reports: [some Report]) throws {
            if json { Console.line(try JSON.text(reports)) } else { reports.flatMap(\.lines).forEach(Console.line) }
        }
    }
#endif
