import Testing
import WireText

@Suite("JSON reader, RFC 8259")
struct JSONReaderTests {
    private static func skips(_ text: String, depth: Int = JSONReader.usualDepth) -> Bool {
        var reader = JSONReader(Array(text.utf8), maximumDepth: depth)
        return (try? reader.skipValue()) != nil && reader.isAtEnd()
    }

    @Test(arguments: [
        "{}", "[]", "0", "-0", "-1.5e+10", "1E400", "true", "false", "null", #""""#,
        #""a\"\\\/\b\f\n\r\té\ud83d\ude00""#,
        #"{"a":{"b":[1,2,{"c":null}]},"a":2}"#, " \t\r\n [ 1 , 2 ] \n", "\"\u{7F}é\u{2028}\"",
    ])
    func validTextIsAccepted(_ text: String) {
        #expect(Self.skips(text))
    }

    @Test(arguments: [
        "", " ", "{", "}", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{1:2}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#,
        #"{"a" 1}"#, "01", "-", "+1", "1.", ".5", "1e", "0x1", "NaN", "Infinity", "tru", "True", "nul", #"""#, #""\""#,
        #""\x""#, #""\u12""#, #""\u12g4""#, "\"\u{01}\"", "\"a\nb\"", "'a'", "1 2", "{}{}", "[1]]", "// a", "[1]//",
    ])
    func invalidTextIsRefused(_ text: String) {
        #expect(!Self.skips(text))
    }

    @Test(arguments: [("\u{212A}", "K"), ("e\u{301}", "\u{E9}"), ("\u{37E}", ";"), ("\u{1FEF}", "`")])
    func namesAreEqualIfTheirBytesAre(_ name: String, _ other: String) throws {
        // As Swift's strings they are equal.
        #expect(name == other)
        #expect(MemberName(name) != MemberName(other) && MemberName(name) == MemberName(name))
        var reader = JSONReader(Array(#"{"\#(name)":1,"\#(other)":2}"#.utf8))
        var values: [MemberName: Int] = [:]
        try reader.readObject { (name, value) throws(JSONSyntaxError) in values[name] = try value.readInt() }
        #expect(values == [MemberName(name): 1, MemberName(other): 2])
    }

    /// Sorting the marks, as Unicode's normal forms need it, would take hours.
    @Test(.timeLimit(.minutes(1)))
    func nameOfManyMarksIsComparedInTimeThatGrowsWithIt() throws {
        let name = String(repeating: "\u{301}\u{323}", count: 500_000)
        var reader = JSONReader(Array(#"{"\#(name)":1}"#.utf8))
        var names: Set<MemberName> = []
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            #expect(name != "id")
            names.insert(name)
            try value.skipValue()
        }
        #expect(names.contains(MemberName(name)))
    }

    @Test func nestingIsLimited() {
        let nested = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
        #expect(Self.skips(nested, depth: 64))
        #expect(!Self.skips(nested, depth: 63))
        #expect(!Self.skips(String(repeating: "[", count: 1 << 20)))
        #expect(!Self.skips(String(repeating: #"{"a":"#, count: 1 << 18)))
    }

    @Test func siblingsDoNotCountAsNesting() {
        #expect(Self.skips("[" + String(repeating: "[],", count: 1000) + "{}]", depth: 2))
    }

    @Test(arguments: [
        (#""plain""#, "plain"), (#""\u0041\n\"""#, "A\n\""), (#""\ud83d\ude00!""#, "😀!"), (#""é\u00e9""#, "éé"),
        (#""\ud83d""#, "\u{FFFD}"), (#""\ude00x""#, "\u{FFFD}x"), (#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀"),
        (#""\ud83dA""#, "\u{FFFD}A"), (#""a\/b""#, "a/b"),
    ])
    func stringsAreUnescaped(_ text: String, _ expected: String) throws {
        var reader = JSONReader(Array(text.utf8))
        #expect(try reader.readString() == expected)
    }

    @Test func membersAreReadByName() throws {
        var reader = JSONReader(
            Array(#" {"id":7,"skip":[{"id":8}],"on":true,"none":null,"raw":{"x":"#.utf8) + Array("\n 1\r\n}} ".utf8))
        var seen: [String] = []
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "id": seen.append("id \(try value.readUInt64())")
            case "on": seen.append("on \(try value.readBool())")
            case "none": seen.append("none \(value.skipNull())")
            case "raw": seen.append("raw " + String(decoding: try value.readRaw(), as: UTF8.self))
            default: try value.skipValue()
            }
        }
        try reader.finish()
        #expect(seen == ["id 7", "on true", "none true", #"raw {"x": 1}"#])
    }

    @Test(arguments: [
        ("{}", true), (" {\"a\":[\"x\",\"y\"]}\n", true), ("{\"a\":[1]}", false), ("{\"a\":[\"x\"]", false),
        ("{}{}", false),
        ("[]", false), ("", false),
    ])
    func documentIsOneObject(_ text: String, _ isDocument: Bool) {
        var strings: [String] = []
        let isRead = JSONReader.readDocument(Array(text.utf8)) { (_, value) throws(JSONSyntaxError) in
            strings = try value.readStrings()
        }
        #expect(isRead == isDocument)
        #expect(strings.isEmpty || strings.first == "x")
    }

    @Test(arguments: ["-1", "1.0", "1e3", "18446744073709551616", "\"1\"", "null"])
    func wholeNumbersAreStrict(_ text: String) {
        var reader = JSONReader(Array(text.utf8))
        #expect(throws: JSONSyntaxError.self) { try reader.readUInt64() }
    }

    @Test func numbersKeepTheirRange() throws {
        var reader = JSONReader(Array("[18446744073709551615,-9223372036854775808,2.5,1e999]".utf8))
        var index = 0
        try reader.readArray { (element) throws(JSONSyntaxError) in
            switch index {
            case 0: #expect(try element.readUInt64() == .max)
            case 1: #expect(try element.readInt() == .min)
            case 2: #expect(try element.readDouble() == 2.5)
            default: #expect(try element.readDouble() == .infinity)
            }
            index += 1
        }
        #expect(index == 4)
    }

    @Test func errorsNameThePlace() {
        var reader = JSONReader(Array(#"{"a":1,"b":}"#.utf8))
        #expect(throws: JSONSyntaxError(.unexpected(expected: "a JSON value"), at: 11)) { try reader.skipValue() }
    }

    @Test func stringsAreEscapedWhenWritten() {
        var bytes: [UInt8] = []
        bytes.append(jsonString: "a\"\\\n\r\t\u{01}\u{1F}é😀\u{2028}")
        #expect(String(decoding: bytes, as: UTF8.self) == #""a\"\\\n\r\t\u0001\u001fé😀"# + "\u{2028}\"")
    }

    @Test(arguments: [
        (0x00, #"\u0000"#), (0x09, #"\t"#), (0x0A, #"\n"#), (0x0D, #"\r"#), (0x1F, #"\u001f"#), (0x22, #"\""#),
        (0x5C, #"\\"#), (0x7F, #"\u007f"#), (0x202E, #"\u202e"#), (0xFEFF, #"\ufeff"#),
    ])
    func codeUnitHasOneEscape(_ unit: UInt16, _ escape: String) {
        #expect(Array(JSONEscape(unit)) == Array(escape.utf8))
    }

    /// Any text either fails or is read to its end, in every prefix.
    @Test func prefixesNeverReadBeyondTheirEnd() {
        let text = Array(#"{"a":[1,-2.5e3,"x\u00e9\n",true,null],"b":{"c":false}}"#.utf8)
        for count in 0..<text.count {
            var reader = JSONReader(Array(text[..<count]))
            #expect(throws: JSONSyntaxError.self) { try reader.skipValue() }
            var part = JSONReader(text, in: 0..<count)
            #expect(throws: JSONSyntaxError.self) { try part.skipValue() }
        }
    }
}
