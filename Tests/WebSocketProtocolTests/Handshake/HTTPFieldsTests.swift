import Testing
import WebSocketProtocol

@Suite("Header fields, RFC 9110 §5")
struct HTTPFieldsTests {
    static let fields = HTTPFields([
        HTTPField("Accept", "a, b"), HTTPField("X", "1"), HTTPField("ACCEPT", " ,, \"c, \\\" d\" ;e=f,, g"),
        HTTPField("accept", ""),
    ])

    @Test func fieldNameIsFoundInAnyCase() {
        #expect(Self.fields["aCCept"] == "a, b")
        #expect(Self.fields["y"] == nil)
        #expect(Self.fields.values("accept").count == 3)
    }

    @Test func singleFieldDiffersFromSeveralAndNone() {
        let repeated = Self.fields.single("ACCEPT")
        #expect(repeated.first == "a, b" && repeated.isRepeated && !repeated.occursOnce)
        let single = Self.fields.single("x")
        #expect(single.first == "1" && !single.isRepeated && single.occursOnce)
        let absent = Self.fields.single("y")
        #expect(absent.first == nil && !absent.isRepeated && !absent.occursOnce)
    }

    @Test func listsOfAllFieldsOfANameAreJoinedAndQuotedCommasKept() {
        #expect(Self.fields.list("Accept") == ["a", "b", "\"c, \\\" d\" ;e=f", "g"])
        #expect(Self.fields.list("Accept", contains: "G"))
        #expect(!Self.fields.list("Accept", contains: "c"))
        #expect(Self.fields.list("nothing") == [])
    }

    @Test func unfinishedQuoteGoesToTheEnd() {
        #expect(HTTPFields([HTTPField("A", "x, \"y, z\\")]).list("A") == ["x", "\"y, z\\"])
    }

    @Test(arguments: [
        ("A", "b", true), ("A", "", true), ("A-b_c", "x y", true), ("A", "é", true), ("", "b", false),
        ("A b", "c", false),
        ("A:", "c", false), ("A", "b\r\nC: d", false), ("A", "b\n", false), ("A", "b\0", false), ("A", " b", false),
        ("A", "b\t", false), ("É", "b", false),
    ])
    func wellFormedFieldsAreRecognized(name: String, value: String, isWellFormed: Bool) {
        #expect(HTTPField(name, value).isWellFormed == isWellFormed)
    }
}
