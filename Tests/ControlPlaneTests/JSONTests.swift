import ControlAPI
import ControlPlane
import GatewayCore
import HTTPTypes
import HummingbirdCore
import StreamTransport
import Testing

@Suite("JSON of the REST interface")
struct JSONTests {
    private func text(_ write: (inout JSONText) -> Void) -> String {
        var text = JSONText()
        write(&text)
        return String(decoding: text.bytes, as: UTF8.self)
    }

    @Test func membersAreSeparatedByCommas() {
        let text = self.text {
            $0.beginObject()
            $0.member("a", 1)
            $0.member("none", nil as String?)
            $0.key("b")
            $0.beginArray()
            $0.number(2)
            $0.beginObject()
            $0.endObject()
            $0.string("x")
            $0.endArray()
            $0.member("c", true)
            $0.endObject()
        }
        #expect(text == #"{"a":1,"b":[2,{},"x"],"c":true}"#)
    }

    @Test(arguments: [
        ("plain", #""plain""#), ("\"\\/", #""\"\\/""#), ("\n\r\t\u{0}\u{1F}\u{7F}", #""\n\r\t\u0000\u001f\u007f""#),
        ("é€😀", #""é€😀""#), ("", #""""#), ("a\"é\\b\u{1}€", #""a\"é\\b\u0001€""#),
    ])
    func textsAreEscaped(_ text: String, _ expected: String) {
        #expect(self.text { $0.string(text) } == expected)
    }

    @Test(arguments: [
        (Duration.zero, "0"), (.milliseconds(1500), "1500"), (.microseconds(1), "0.001"),
        (.microseconds(12_345), "12.345"),
        (.microseconds(-1500), "-1.500"), (.nanoseconds(999), "0"),
    ])
    func durationsAreMilliseconds(_ duration: Duration, _ expected: String) {
        #expect(self.text { $0.member("ms", duration) } == "\"ms\":\(expected)")
    }

    @Test func numbersAreDigits() {
        let text = self.text {
            $0.number(0)
            $0.number(7)
            $0.number(10)
            $0.number(UInt64.max)
            $0.number(Int64.min)
            $0.number(-1)
        }
        #expect(text == "0,7,10,18446744073709551615,-9223372036854775808,-1")
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (951_782_400_007, "2000-02-29T00:00:00.007Z"),
        (1_709_251_199_999, "2024-02-29T23:59:59.999Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-5, "1970-01-01T00:00:00.000Z"), (Int64.max, "9999-12-31T23:59:59.999Z"),
    ])
    func timesAreThoseOfRFC3339(_ milliseconds: Int64, _ expected: String) {
        #expect(self.text { $0.member("at", time: milliseconds) } == "\"at\":\"\(expected)\"")
    }

    @Test(arguments: [
        (0.5, "0.5"), (0, "0.0"), (1, "1.0"), (0.25, "0.25"), (-0.5, "-0.5"), (.nan, "0"), (1e300, "1e+300"),
    ])
    func fractionsAreTheShortestThatAreReadBack(_ number: Double, _ expected: String) {
        #expect(self.text { $0.number(number) } == expected)
    }

    @Test(arguments: [
        (ConnectionKey(17), #"{"of":"17"}"#), (ConnectionKey(.max, .upstream), #"{"of":"18446744073709551615u"}"#),
    ])
    func connectionsAreWrittenAsTheirNames(_ connection: ConnectionKey, _ expected: String) {
        let text = self.text {
            $0.beginObject()
            $0.member("of", connection)
            $0.endObject()
        }
        #expect(text == expected)
    }

    @Test(arguments: [
        (SocketAddress.ipv4(address: 0xFFFF_FFFF, port: 65_535), #"{"at":"255.255.255.255:65535"}"#),
        (.ipv6(high: 0, low: 1, scope: 0, port: 80), #"{"at":"[::1]:80"}"#),
        (.unix(path: "/a\"b"), #"{"at":"unix:/a\"b"}"#),
    ])
    func addressesAreTexts(_ address: SocketAddress, _ expected: String) {
        let text = self.text {
            $0.beginObject()
            $0.member("at", address)
            $0.endObject()
        }
        #expect(text == expected)
    }

    /// Rounded down, before the anchor too.
    @Test(arguments: [(0, 1000), (999_999, 1000), (1_000_000, 1001), (-1, 1000), (-1000, 999), (-1_000_000, 999)])
    func instantsAreWholeMilliseconds(_ nanoseconds: Int64, _ expected: Int64) {
        let anchor = TimeAnchor(instant: MonotonicInstant(nanoseconds: 50_000_000_000), milliseconds: 1000)
        #expect(anchor.milliseconds(of: MonotonicInstant(nanoseconds: 50_000_000_000 + nanoseconds)) == expected)
    }

    @Test func memberNamesAreEscaped() {
        let text = self.text {
            $0.beginObject()
            $0.escapedKey("a\"b")
            $0.number(1)
            $0.endObject()
        }
        #expect(text == #"{"a\"b":1}"#)
    }

    private func decode(_ text: String) throws -> OpenRequest {
        try JSONBody.decode(OpenRequest.self, from: Array(text.utf8))
    }

    @Test func aBodyIsRead() throws {
        #expect(
            try self.decode(#"{"url":"tcp://a:1","labels":{"x":"y"}}"#)
                == OpenRequest { ($0.url, $0.labels) = ("tcp://a:1", ["x": "y"]) })
    }

    @Test(
        arguments: [
            (#"{"#, 400, nil), ("nonsense", 400, nil), ("[]", 422, ""), (#"{}"#, 422, "/url"),
            (#"{"url":1}"#, 422, "/url"),
            (#"{"url":null}"#, 422, "/url"), (#"{"url":"tcp://a:1","urll":2}"#, 422, "/urll"),
            (#"{"url":"tcp://a:1","labels":{"x":1}}"#, 422, "/labels/x"),
            (#"{"url":"tcp://a:1","a/b~c":1}"#, 422, "/a~1b~0c"),
            (#"{"url":"tcp://a:1","tls":{"insecure":"yes"}}"#, 422, "/tls/insecure"),
        ] as [(String, Int, String?)])
    func aWrongBodyIsPointedAt(_ text: String, _ status: Int, _ pointer: String?) {
        let problem = #expect(throws: ControlProblem.self) { try self.decode(text) }
        #expect(problem?.status == status)
        #expect(problem?.errors.first?.pointer == pointer)
    }

    /// RFC 8259 §4: programs differ in which of them they take.
    @Test(
        arguments: [
            (OpenRequest.self, #"{"url":"tcp://a:1","url":"tcp://b:1"}"#, "/url"),
            (OpenRequest.self, #"{"url":"tcp://a:1","\u0075rl":"tcp://a:1"}"#, "/url"),
            (OpenRequest.self, #"{"url":"tcp://a:1","tls":{"insecure":false,"insecure":true}}"#, "/tls/insecure"),
            (OpenRequest.self, #"{"url":"tcp://a:1","labels":{"a":"1","b":"2","a":"3"}}"#, "/labels/a"),
            (OpenRequest.self, #"{"a":[{},{"b/c":1,"b/c":2}]}"#, "/a/1/b~1c"),
            (BulkRequest.self, #"{"selector":{"labels":{"team":"a","team":"b"}}}"#, "/selector/labels/team"),
            (RoomPublish.self, #"{"data":{"a":1},"data":{"a":2}}"#, "/data"),
            (RoomPublish.self, #"{"data":1,"tags":{"a":"1","a":"2"}}"#, "/tags/a"),
        ] as [(any StrictDecodable.Type, String, String)])
    func aMemberThatOccursTwiceIsPointedAt(
        _ type: any StrictDecodable.Type, _ text: String, _ pointer: String
    ) {
        let problem = #expect(throws: ControlProblem.self) { try JSONBody.decode(type, from: Array(text.utf8)) }
        #expect(problem?.status == 422 && problem?.code == "duplicate-member")
        #expect(problem?.errors.map(\.pointer) == [pointer])
    }

    @Test(arguments: [
        #"{"url":01}"#, #"{"url":-}"#, #"{"url":1.}"#, #"{"url":1e}"#, #"{"url":"\x"}"#, #"{"url":"\u12"}"#,
        #"{"labels":{"a":+1}}"#, "{\"url\":\"\u{1}\"}",
    ])
    func malformedValueIsMalformedJSON(_ text: String) {
        let problem = #expect(throws: ControlProblem.self) {
            try JSONBody.decode(OpenRequest.self, from: Array(text.utf8))
        }
        #expect(problem?.status == 400 && problem?.code == "malformed-json")
    }

    @Test(arguments: [
        (#"{"url":1e999}"#, "/url"), (#"{"labels":{"a":"\ud800"}}"#, "/labels/a"),
        ("\u{FEFF}{\"url\":1e999}", "/url"),
    ])
    func valueThatNothingHoldsIsPointedAt(_ text: String, _ pointer: String) {
        let problem = #expect(throws: ControlProblem.self) {
            try JSONBody.decode(OpenRequest.self, from: Array(text.utf8))
        }
        #expect(problem?.status == 422 && problem?.code == "invalid-value")
        #expect(problem?.errors.map(\.pointer) == [pointer])
    }

    @Test(arguments: [
        #"{"data":{"a":1,"a":2}}"#, "\u{FEFF}{\"data\":1}",
        #"{"data":\#(String(repeating: "[", count: 100) + String(repeating: "]", count: 100))}"#,
        #"{"data":{"large":1e400,"half":"\ud800"},"b64data":null}"#,
    ])
    func contentThatIsPassedOnIsNotSearched(_ text: String) throws {
        #expect(try JSONBody.decode(RoomPublish.self, from: Array(text.utf8)).data != nil)
    }

    /// Comparing and hashing long names as strings takes time that grows with the square of their marks.
    private static let longName = String(repeating: "\u{327}\u{301}", count: 16 << 10)

    @Test(arguments: ["", "/labels"])
    func nameOfMoreThan256BytesIsRefused(_ pointer: String) {
        for name in [String(repeating: "n", count: 257), Self.longName] {
            let object = "{\"\(name)\":\"a\"}"
            let body = pointer.isEmpty ? object : "{\"url\":\"tcp://a:1\",\"labels\":\(object)}"
            let problem = #expect(throws: ControlProblem.self) { _ = try self.decode(body) }
            #expect(problem?.status == 422 && problem?.code == "invalid-value")
            #expect(problem?.errors.map(\.pointer) == [pointer])
        }
    }

    @Test func contentMayHaveLongNames() throws {
        let body = "{\"data\":{\"\(Self.longName)\":1}}"
        #expect(try JSONBody.decode(RoomPublish.self, from: Array(body.utf8)).data == true)
    }

    @Test(arguments: [
        (#"{"url":"tcp://a:1","maximumMessageSizeBytes":1.5}"#, "wrong-type", "/maximumMessageSizeBytes"),
        (#"{"url":"tcp://a:1","maximumMessageSizeBytes":1e400}"#, "invalid-value", "/maximumMessageSizeBytes"),
        (
            #"{"url":"tcp://a:1","maximumMessageSizeBytes":99999999999999999999}"#, "wrong-type",
            "/maximumMessageSizeBytes"
        ),
        (#"{"url":"tcp://a:1","keepAlive":{"probes":-1.5}}"#, "wrong-type", "/keepAlive/probes"),
        (#"{"url":"tcp://a:1","priority":1e400}"#, "invalid-value", "/priority"),
    ])
    func aNumberThatIsNotWholeOrTooLargeIsPointedAt(_ text: String, _ code: String, _ pointer: String) {
        let problem = #expect(throws: ControlProblem.self) { try self.decode(text) }
        #expect(problem?.status == 422)
        #expect(problem?.code == code)
        #expect(problem?.errors.first?.pointer == pointer)
    }

    @Test func numbersInEveryJSONFormAreRead() throws {
        let request = try self.decode(#"{"url":"tcp://a:1","maximumMessageSizeBytes":1e5,"connectTimeoutMs":1.5}"#)
        #expect(request.maximumMessageSizeBytes == 100_000 && request.connectTimeoutMs == 1.5)
    }

    @Test(arguments: [
        (#"{"selector":{"minAgeMs":[1,1e400]}}"#, "/selector/minAgeMs/1"), (#"{"code":1000.25}"#, "/code"),
    ])
    func aNumberIsPointedAtInValuesOfAnyShape(_ text: String, _ pointer: String) {
        let problem = #expect(throws: ControlProblem.self) {
            try JSONBody.decode(BulkRequest.self, from: Array(text.utf8))
        }
        #expect(problem?.status == 422)
        #expect(problem?.errors.first?.pointer == pointer)
    }

    @Test func problemDocumentHasAllItsMembers() throws {
        var problem = ControlProblem(429, "peer-buffer-full", "Wait.").retryable(after: 3).at(pointer: "/text")
        problem.connection = Array(#"{"id":"17"}"#.utf8)
        let expected = Problem {
            ($0.title, $0.status, $0.code) = ("Too Many Requests", 429, "peer-buffer-full")
            ($0.detail, $0.retryable) = ("Wait.", true)
            $0.errors = [ProblemField { ($0.pointer, $0.detail) = ("/text", "Wait.") }]
            $0.connection = Connection { $0.id = "17" }
        }
        #expect(try JSONReading.read(Problem.self, problem.json) == expected)
        #expect(problem.response.headers[.retryAfter] == "3")
        #expect(problem.response.headers[.contentType] == "application/problem+json")
    }
}
