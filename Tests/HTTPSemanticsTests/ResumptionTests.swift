import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Resuming, RFC 9110 §13.1.5 and §14")
struct ResumptionTests {
    /// Tue, 14 Nov 2023 22:13:20 GMT
    private let now = HTTPDate(seconds: 1_700_000_000)
    private static let older = "Tue, 14 Nov 2023 22:00:00 GMT"
    private static let date = "Tue, 14 Nov 2023 22:13:20 GMT"

    @Test(
        arguments: [
            ("bytes 0-499/1234", 0, 499, 1234), ("bytes 500-999/*", 500, 999, nil), ("Bytes  0-0/1", 0, 0, 1),
            ("bytes */1234", nil, nil, 1234), (" bytes 5 - 6 / 7 ", 5, nil, nil),
        ] as [(String, Int64?, Int64?, Int64?)])
    func contentRangeIsRead(_ text: String, _ first: Int64?, _ last: Int64?, _ total: Int64?) {
        guard first == nil || last != nil else {
            #expect(ContentRange(text) == nil)
            return
        }
        #expect(ContentRange(text)?.bytes?.lowerBound == first)
        #expect(ContentRange(text)?.bytes?.upperBound == last)
        #expect(ContentRange(text)?.total == total)
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-499", "bytes 499-0/1234", "bytes 0-499/499", "bytes */*", "items 0-1/2", "bytes -1/2",
        "bytes 0-/2", "bytes 0-1-2/3", "bytes 0-99999999999999999999/*", "bytes 0-1/2/3", "bytes +0-1/2", "bytes=0-1/2",
    ])
    func invalidContentRangeIsRefused(_ text: String) {
        #expect(ContentRange(text) == nil)
    }

    @Test func strongestValidatorIsUsed() {
        let both: HTTPFields = [.eTag: "\"x\"", .lastModified: Self.older, .date: Self.date]
        #expect(ResumeValidator(both, now: self.now) == .entityTag("\"x\""))
        let weak: HTTPFields = [.eTag: "W/\"x\"", .lastModified: Self.older, .date: Self.date]
        #expect(ResumeValidator(weak, now: self.now) == .lastModified(Self.older))
        #expect(ResumeValidator([.eTag: "W/\"x\""], now: self.now) == nil)
        #expect(ResumeValidator([.lastModified: Self.date, .date: Self.date], now: self.now) == nil)
        #expect(ResumeValidator([.lastModified: "x"], now: self.now) == nil)
        #expect(ResumeValidator([:], now: self.now) == nil)
    }

    @Test func resumptionNeedsAServerThatSupportsIt() {
        let good: HTTPFields = [.eTag: "\"x\"", .acceptRanges: "bytes"]
        let possible = { (method: HTTPRequest.Method, status: Int, fields: HTTPFields) in
            RangeResumption.isPossible(method: method, status: status, fields: fields, now: self.now)
        }
        #expect(possible(.get, 200, good) && possible(.get, 206, [.eTag: "\"x\""]))
        #expect(!possible(.post, 200, good) && !possible(.get, 404, good) && !possible(.get, 200, [.eTag: "\"x\""]))
        #expect(!possible(.get, 200, [.acceptRanges: "bytes"]))
        #expect(!possible(.get, 206, [.eTag: "\"x\"", .acceptRanges: "none"]))
        #expect(!possible(.get, 200, [.eTag: "\"x\"", .acceptRanges: "bytes", .contentEncoding: "gzip"]))
    }

    @Test func resumptionRequestsTheRestConditionally() throws {
        let resumption = try #require(RangeResumption(offset: 500, validator: .entityTag("\"x\"")))
        #expect(resumption.requestFields == [.range: "bytes=500-", .ifRange: "\"x\"", .acceptEncoding: "identity"])
        #expect(RangeResumption(offset: 0, validator: .entityTag("\"x\"")) == nil)
        #expect(RangeResumption(offset: -1, validator: .entityTag("\"x\"")) == nil)
    }

    @Test(
        arguments: [
            (206, [.contentRange: "bytes 500-999/1000"], RangeResumption.Outcome.append(total: 1000)),
            (206, [.contentRange: "bytes 500-999/*", .eTag: "\"x\""], .append(total: nil)),
            (206, [.contentRange: "bytes 500-999/1000", .eTag: "\"y\""], .requestWhole),
            (206, [.contentRange: "bytes 499-999/1000"], .requestWhole),
            (206, [.contentRange: "bytes 500-999/1000", .contentLength: "500"], .append(total: 1000)),
            (206, [.contentRange: "bytes 500-999/1000", .contentLength: "1000"], .requestWhole),
            (206, [.contentRange: "bytes 500-999/*", .contentLength: "9223372036854775807"], .requestWhole),
            (206, [.contentRange: "bytes 501-999/1000"], .requestWhole),
            (206, [:], .requestWhole), (206, [.contentRange: "nonsense"], .requestWhole),
            (206, [.contentRange: "bytes 500-999/1000", .contentEncoding: "gzip"], .requestWhole),
            (206, [.contentType: "multipart/byteranges; boundary=x"], .requestWhole), (200, [:], .restart),
            (416, [.contentRange: "bytes */500"], .complete), (416, [.contentRange: "bytes */400"], .requestWhole),
            (416, [.contentRange: "bytes */500", .eTag: "\"y\""], .requestWhole), (416, [:], .requestWhole),
            (404, [:], .otherResponse),
            (302, [:], .otherResponse), (500, [:], .otherResponse),
        ] as [(Int, HTTPFields, RangeResumption.Outcome)])
    func responseDecidesAboutResumption(_ status: Int, _ fields: HTTPFields, _ outcome: RangeResumption.Outcome) throws
    {
        let resumption = try #require(RangeResumption(offset: 500, validator: .entityTag("\"x\"")))
        #expect(resumption.evaluate(status: status, fields: fields) == outcome)
    }

    @Test func dateValidatesWithoutAnEntityTag() throws {
        let resumption = try #require(RangeResumption(offset: 5, validator: .lastModified(Self.older)))
        let part: HTTPFields = [.contentRange: "bytes 5-9/10", .lastModified: Self.older]
        #expect(resumption.evaluate(status: 206, fields: part) == .append(total: 10))
        let other: HTTPFields = [.contentRange: "bytes 5-9/10", .lastModified: Self.date]
        #expect(resumption.evaluate(status: 206, fields: other) == .requestWhole)
    }
}
