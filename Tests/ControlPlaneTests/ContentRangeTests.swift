import ControlPlane
import HTTPTypes
import Testing

@Suite("Ranges of content, RFC 9110 §14")
struct ContentRangeTests {
    @Test(arguments: [
        ("bytes=0-0", 0, 1), ("bytes=0-499", 0, 500), ("bytes=500-999", 500, 1000), ("bytes=-500", 9500, 10_000),
        ("bytes=9500-", 9500, 10_000), ("bytes=9999-20000", 9999, 10_000), ("bytes=-20000", 0, 10_000),
        ("Bytes=5-9", 5, 10), ("bytes= 5-9", 5, 10), ("bytes=1-2,20000-", 1, 3),
        ("bytes=5-99999999999999999999", 5, 10_000), ("bytes=-99999999999999999999", 0, 10_000),
    ])
    func aRangeGivesItsPart(_ field: String, _ start: Int64, _ end: Int64) throws {
        let range = try ContentRange(field, length: 10_000)
        #expect((range.start, range.end) == (start, end))
        #expect(range.status == .partialContent)
        #expect(range.headers[.contentRange] == "bytes \(start)-\(end - 1)/10000")
    }

    /// §14.2: what cannot be understood is passed over.
    @Test(arguments: [
        nil, "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=5-4", "bytes=a-b", "bytes=1-2,4-5", "lines=1-2",
        "bytes=+1-2",
        "bytes=--1", "bytes=1--2", "bytes=99999999999999999999-5",
    ])
    func invalidRangeSelectsTheWholeContent(_ field: String?) throws {
        let range = try ContentRange(field, length: 10_000)
        #expect((range.start, range.end) == (0, 10_000))
        #expect(range.status == .ok)
        #expect(range.headers[.contentRange] == nil)
    }

    @Test(arguments: [
        ("bytes=10000-", 10_000), ("bytes=-0", 10_000), ("bytes=0-", 0), ("bytes=9223372036854775806-", 5),
        ("bytes=99999999999999999999-", 10_000), ("bytes=99999999999999999999-99999999999999999999", 10_000),
    ])
    func emptyRangeIsNotSatisfiable(_ field: String, _ length: Int64) {
        #expect { try ContentRange(field, length: length) } throws: { ($0 as? ControlProblem)?.status == 416 }
    }
}
