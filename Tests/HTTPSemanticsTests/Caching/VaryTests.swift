import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Vary, RFC 9111 §4.1")
struct VaryTests {
    /// As Swift's strings, such texts are compared in time that grows with the square of their marks.
    @Test(.timeLimit(.minutes(1)))
    func whatIsNoNameNominatesNothing() {
        let marks = String(repeating: "\u{301}\u{323}", count: 200_000)
        let key = VaryKey(response: [.vary: "\(marks), accept, \(marks)x"], request: [.accept: "a"])
        #expect(key.values?.keys.sorted() == ["accept"])
        #expect(key.matches([.accept: "a"]) && !key.matches([.accept: "b"]))
    }

    private func matches(_ vary: String, _ first: HTTPFields, _ second: HTTPFields) -> Bool {
        VaryKey(response: [.vary: vary], request: first).matches(second)
    }

    @Test func anyRequestMatchesWithoutVary() {
        #expect(VaryKey(response: [:], request: [.accept: "a"]).matches([.accept: "b"]))
    }

    @Test func requestsMustMatchTheVaryFields() {
        #expect(self.matches("Accept", [.accept: "a"], [.accept: "a", .cookie: "x"]))
        #expect(!self.matches("Accept", [.accept: "a"], [.accept: "b"]))
        #expect(!self.matches("Accept", [.accept: "a"], [:]))
        #expect(!self.matches("accept", [:], [.accept: "a"]))
        #expect(self.matches("accept", [:], [:]))
        #expect(!self.matches("accept, user-agent", [.accept: "a", .userAgent: "1"], [.accept: "a", .userAgent: "2"]))
        #expect(!self.matches("Accept", [.accept: ""], [:]))
    }

    @Test func blanksAndLinesMakeNoDifference() {
        var lines = HTTPFields()
        lines[values: .accept] = ["a", "b;q=1"]
        #expect(self.matches("Accept", lines, [.accept: " a ,b;q=1"]))
    }

    @Test func starNeverMatches() {
        #expect(!self.matches("*", [:], [:]))
    }

    @Test func varyKeyReadsBackEqual() {
        let selection = VaryKey(response: [.vary: "accept, cookie"], request: [.accept: "a"])
        #expect(selection.values == ["accept": "a", "cookie": nil])
        #expect(VaryKey(values: selection.values) == selection)
    }
}
