import CommandLineText
import Testing

@Suite("Lines typed at a terminal")
struct TypedLineTests {
    @Test(arguments: [
        ("hello", TypedLine.message("hello")), ("", .message("")), (" /ping", .message(" /ping")),
        ("//ping", .message("/ping")), ("///", .message("//")),
        ("/ping", .command(.ping(""))), ("/ping  a b", .command(.ping("a b"))),
        ("/binary 00ff 7F", .command(.binary([0, 255, 127]))), ("/binary 0a:0b", .command(.binary([10, 11]))),
        ("/close", .command(.close(code: nil, reason: ""))), ("/quit", .command(.close(code: nil, reason: ""))),
        ("/close 4001", .command(.close(code: 4001, reason: ""))),
        ("/close 4001 see you later", .command(.close(code: 4001, reason: "see you later"))),
        ("/status", .command(.status)), ("/help", .command(.help)), ("/?", .command(.help)),
    ])
    func typedLineIsAMessageOrACommand(_ line: String, _ expected: TypedLine) throws {
        #expect(try TypedLine(line) == expected)
    }

    @Test(arguments: [
        "/", "/nonsense", "/binary", "/binary 0", "/binary 0 0", "/binary zz", "/binary é", "/close 1005", "/close 999",
        "/close 65536", "/close bye", "/close -1", "/close 4000 " + String(repeating: "é", count: 62),
        "/ping " + String(repeating: "x", count: 126),
    ])
    func commandErrorShowsTheCorrectForm(_ line: String) {
        #expect(throws: CommandError.self) { try TypedLine(line) }
    }

    @Test func unknownCommandErrorNamesTheKnownCommands() {
        let fault = #expect(throws: CommandError.self) { try TypedLine("/pnig x") }
        #expect(fault?.description.contains("/ping") == true && fault?.description.contains("//pnig") == true)
    }

    @Test func hexadecimalBytesAreParsed() {
        #expect(HexText.text([0, 255, 10]) == "00 ff 0a" && HexText.text([]).isEmpty)
        #expect(HexText.bytes("") == [] && HexText.bytes("٣٣") == nil)
    }
}
