import Foundation
import Testing
import URLLoading

@Suite("Codes and messages of WebSockets")
struct WebSocketValueTests {
    @Test func anyCloseCodeHasAValue() {
        typealias Code = URLSessionWebSocketTask.CloseCode
        let known: [(Code, Int)] = [
            (.invalid, 0), (.normalClosure, 1000), (.goingAway, 1001), (.protocolError, 1002),
            (.unsupportedData, 1003), (.noStatusReceived, 1005), (.abnormalClosure, 1006),
            (.invalidFramePayloadData, 1007), (.policyViolation, 1008), (.messageTooBig, 1009),
            (.mandatoryExtensionMissing, 1010), (.internalServerError, 1011), (.tlsHandshakeFailure, 1015),
        ]
        for (code, number) in known { #expect(code.rawValue == number && Code(rawValue: number) == code) }
        #expect(Code(rawValue: 4001)?.rawValue == 4001)
    }

    @Test func messagesAreObjectsToo() {
        let text = NSURLSessionWebSocketMessage(string: "text")
        let data = NSURLSessionWebSocketMessage(data: Data([1]))
        #expect(text.type == .string && text.string == "text" && text.data == nil)
        #expect(data.type == .data && data.data == Data([1]) && data.string == nil)
        #expect(NSURLSessionWebSocketMessageType.data.rawValue == 0)
        #expect(NSURLSessionWebSocketMessageType.string.rawValue == 1)
        if case .string("text") = URLSessionWebSocketTask.Message(text) {} else { Issue.record("no text") }
        if case .data(Data([1])) = URLSessionWebSocketTask.Message(data) {} else { Issue.record("no data") }
        #expect(NSURLSessionWebSocketMessage(.string("x")).string == "x")
        #expect(NSURLSessionWebSocketMessage(.data(Data())).type == .data)
    }
}
