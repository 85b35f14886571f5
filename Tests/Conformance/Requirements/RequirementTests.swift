import Testing

@Suite("Requirements of the RFCs and their tests")
struct RequirementTests {
    private static let all =
        Requirement.openingHandshake + Requirement.framing + Requirement.closing + Requirement.permessageDeflate

    @Test func everyTestThatARequirementNamesExists() throws {
        let tests = try NamedTests.all()
        for requirement in Self.all {
            let missing = requirement.tests.filter { !tests.contains($0) }
            #expect(missing == [], "\(requirement)")
        }
    }

    @Test func everyRequirementIsProvenOrItsDeviationIsExplained() {
        for requirement in Self.all {
            switch requirement.standing {
            case .proven(let tests): #expect(!tests.isEmpty, "\(requirement)")
            case .deviation(let reason), .unproven(let reason): #expect(!reason.isEmpty, "\(requirement)")
            }
            #expect(requirement.source.wholeMatch(of: /RFC \d+ §[\d.]+/) != nil, "\(requirement)")
        }
    }

    @Test func noRequirementIsListedTwice() {
        #expect(Set(Self.all.map(\.description)).count == Self.all.count)
    }

    @Test func namedTestsAreFoundByFileAndFunction() {
        let swift = "@Test func a() {}\n@Test(arguments: [1])\nfunc b(_ n: Int) {}\nfunc c() {}"
        #expect(NamedTests.names(in: swift, file: "XTests.swift") == ["XTests.a", "XTests.b"])
        let python = "def test_a(x):\n    pass\ndef other():\n    def test_b(): pass\n"
        #expect(NamedTests.names(in: python, file: "test_x.py") == ["test_x.py::test_a"])
    }
}
