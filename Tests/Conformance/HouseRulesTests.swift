import Testing

@Suite("Source rules")
struct HouseRulesTests {
    private func rules(_ text: String, path: String = "Sources/GatewayCore/Route.swift") -> [String] {
        HouseRules.findings(in: SourceFile(path: path, text: text)).map(\.rule)
    }

    @Test func sourcesKeepTheRules() async throws {
        let findings = try await SourceFile.all().flatMap(HouseRules.findings)
        #expect(findings == [], "\(findings.map(\.description).joined(separator: "\n"))")
    }

    @Test(arguments: [
        "a!.b", "f()!", "c[0]!", "var a: Int!", "try! f()", "b as! C", "fatalError()", "preconditionFailure(\"x\")",
        "\"\\(a!)\"", "a! = b", "x?.y!", "`default`!",
    ])
    func trapIsFound(_ source: String) {
        #expect(self.rules(source).count == 1)
    }

    @Test(arguments: [
        "a != b", "a!=b", "!a", "if !f() {}", "a && !b", "(!a)", "[!a]", "// a!", "\"fatalError() a!\"", "a !== b",
    ])
    func textThatResemblesATrapIsIgnored(_ source: String) {
        #expect(self.rules(source) == [])
    }

    @Test(arguments: [
        "let p: UnsafeRawPointer", "a.withUnsafeBytes { $0 }", "unsafe f()", "nonisolated(unsafe) var a = 1",
        "unsafeBitCast(a, to: B.self)",
    ])
    func unsafeCodeOutsideItsFoldersIsFound(_ source: String) {
        #expect(self.rules(source).count == 1)
        #expect(self.rules(source, path: "Sources/StreamTransport/Loop/Loop.swift").count == 1)
        #expect(self.rules(source, path: "Sources/StreamTransport/System/Loop.swift") == [])
        #expect(self.rules(source, path: "Sources/ByteKernels/Mask.swift") == [])
    }

    @Test func publicOutsideTheLibraryIsFound() {
        #expect(self.rules("public struct Route {}") == ["public in GatewayCore"])
        #expect(self.rules("open class Route {}") == ["open in GatewayCore"])
        #expect(self.rules("public struct Frame {}", path: "Sources/WebSocketProtocol/Frame.swift") == [])
        #expect(self.rules("enum Route { case open; func open() {} }") == [])
    }

    @Test func fileOfMoreThan600LinesIsFound() {
        #expect(self.rules(String(repeating: "\n", count: 600)) == [])
        #expect(self.rules(String(repeating: "\n", count: 601)).count == 1)
        #expect(self.rules(String(repeating: "\n", count: 600) + "let a = 1").count == 1)
    }

    @Test func functionOfMoreThan40LinesIsFound() {
        let longest = "func f(a: [Int] = [1]) -> Int {\n" + String(repeating: "g()\n", count: 38) + "}\n"
        #expect(self.rules(longest) == [])
        #expect(self.rules(longest.replacing("{\n", with: "{\n\n")) == ["function f of 41 lines, more than 40"])
        let initializer = "init?(a: Int = { 1 }()) {\n" + String(repeating: "g()\n", count: 40) + "}\n"
        #expect(self.rules(initializer) == ["function init of 42 lines, more than 40"])
        let requirement =
            "protocol Route {\nfunc f()\nvar a: Int { get }\n" + String(repeating: "var b: Int { get }\n", count: 50)
            + "}"
        #expect(self.rules(requirement) == [])
    }
}
