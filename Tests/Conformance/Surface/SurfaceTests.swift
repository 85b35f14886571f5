import Foundation
import Testing

@Suite("The surface shared with Foundation and its tests")
struct SurfaceTests {
    private static let all =
        SurfaceEntry.sessions + SurfaceEntry.transfers + SurfaceEntry.configurations + SurfaceEntry.tasks
        + SurfaceEntry.streams + SurfaceEntry.webSockets + SurfaceEntry.delegates + SurfaceEntry.connectionDelegates
        + SurfaceEntry.choices + SurfaceEntry.credentials + SurfaceEntry.caches
        + SurfaceEntry.cookies + SurfaceEntry.requests + SurfaceEntry.errors + SurfaceEntry.metrics
        + SurfaceEntry.protocols

    @Test func everyTestThatAnEntryNamesExists() throws {
        let tests = try NamedTests.all()
        for entry in Self.all {
            let missing = entry.tests.filter { !tests.contains($0) }
            #expect(missing == [], "\(entry)")
        }
    }

    @Test func everyMemberOfAnEntryOccursInATestThatItNames() async throws {
        let texts = try TestTexts()
        for entry in Self.all where !entry.tests.isEmpty {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let used = texts.identifiers(of: entry.tests)
            let missing = entry.members.filter { used.isDisjoint(with: $0) }
            #expect(missing == [], "\(entry)")
        }
    }

    @Test(arguments: [
        ("data(for:delegate:)", [["data"]]), ("memoryCapacity, diskCapacity", [["memoryCapacity"], ["diskCapacity"]]),
        ("init(memoryCapacity:diskPath:)", [["memoryCapacity", "diskPath"]]), ("init()", [["init"]]),
        ("didReceive response cacheStoragePolicy", [["didReceive", "response", "cacheStoragePolicy"]]),
    ])
    func membersAreReadFromTheNameOfAnEntry(_ name: String, _ members: [[String]]) {
        #expect(SurfaceEntry.proven("A1", name).members == members)
    }

    @Test func everyEntryIsProvenOrExplained() {
        for entry in Self.all {
            switch entry.standing {
            case .proven(let tests): #expect(!tests.isEmpty, "\(entry)")
            case .deviation(let reason): #expect(!reason.isEmpty, "\(entry)")
            case .unproven: Issue.record("\(entry) is open")
            }
            #expect(entry.number.wholeMatch(of: /[A-Q]\d+/) != nil, "\(entry)")
        }
    }

    @Test func everyDeviationIsInTheArticleForProgramsOfFoundation() throws {
        let article = SourceFile.projectRoot.appending(path: "Sources/URLLoading/URLLoading.docc/FromFoundation.md")
        let words = Set(try String(contentsOf: article, encoding: .utf8).matches(of: /\w+/).map { String($0.output) })
        for entry in Self.all where entry.tests.isEmpty {
            #expect(entry.members.allSatisfy { words.isSuperset(of: $0) }, "\(entry)")
        }
    }

    @Test(arguments: [
        ("A", 20), ("B", 22), ("C", 14), ("D", 40), ("E", 27), ("F", 8), ("G", 10), ("H", 17), ("I", 42), ("J", 10),
        ("K", 43), ("L", 58),
        ("M", 20), ("N", 22), ("O", 25), ("P", 13), ("Q", 9),
    ])
    func everyEntryOfASectionOccursOnce(_ section: String, _ count: Int) {
        let numbers = Self.all.map(\.number).filter { $0.hasPrefix(section) }
        #expect(numbers == (1...count).map { "\(section)\($0)" })
    }
}
