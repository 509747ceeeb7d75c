import Testing
import TidemarkWire

@Suite("Texts of others on a screen or in a log")
struct PrintableTests {
    @Test("control characters, and those that turn the direction of writing, are spelled out")
    func spelled() {
        #expect("a\nb\u{1b}[2J".printable == #"a\u000ab\u001b[2J"#)
        #expect("\u{7f}\u{9b}\u{200e}\u{2028}\u{202e}\u{2066}".printable == #"\u007f\u009b\u200e\u2028\u202e\u2066"#)
    }

    @Test("everything else stays as it is", arguments: ["", "ada", "Zoë 'n' 漢字 🌊", #"\u000a"#])
    func kept(text: String) { #expect(text.printable == text) }

    @Test("numbers are told with their word")
    func numbers() {
        #expect(counted(1, "change") == "1 change" && counted(Int64(2), "change") == "2 changes")
        #expect(counted(0, "index", "indexes") == "0 indexes")
    }
}
