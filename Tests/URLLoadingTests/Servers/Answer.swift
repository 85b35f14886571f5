import Foundation

/// The steps of a test's server for one request. After them the connection serves the next request, unless they ended
/// it.
struct Answer: Sendable {
    enum Step: Sendable {
        case send([UInt8])
        /// Waits until the gate is opened.
        case wait(Gate)
        case open(Gate)
        /// FIN; under TLS after close_notify.
        case close
        /// Closes with a reset.
        case reset
        /// Ends the transport below TLS, without close_notify.
        case cut
        /// Sends nothing more, and leaves the connection open.
        case hang
        /// Reads nothing more of the connection until the gate is opened.
        case stopReading(Gate)
        /// On HTTP/2, resets the stream with HTTP_1_1_REQUIRED.
        case requireHTTP11
        /// On HTTP/2, resets the stream with REFUSED_STREAM.
        case refuse
    }

    var steps: [Step]

    init(_ steps: [Step]) { self.steps = steps }

    // MARK: Whole answers

    /// A response with a length.
    static func response(_ status: Int = 200, _ fields: [String] = [], _ body: some Sequence<UInt8>) -> Answer {
        let body = Array(body)
        return .head(status, fields + ["Content-Length: \(body.count)"]).then(.send(body)).joined()
    }

    static func text(_ text: String, _ fields: [String] = [], status: Int = 200) -> Answer {
        .response(status, ["Content-Type: text/plain"] + fields, text.utf8)
    }

    /// Only the given status and fields.
    static func head(_ status: Int, _ fields: [String] = []) -> Answer {
        .raw("HTTP/1.1 \(status) Said\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n")
    }

    static func raw(_ text: String) -> Answer { Answer([.send(Array(text.utf8))]) }

    static func redirect(_ status: Int = 302, to location: String, _ fields: [String] = []) -> Answer {
        .text("moved", ["Location: \(location)"] + fields, status: status)
    }

    static func chunked(_ pieces: [String], _ fields: [String] = [], trailers: [String] = []) -> Answer {
        var answer = Answer.head(200, fields + ["Transfer-Encoding: chunked"])
        for piece in pieces { answer.steps.append(.send(self.chunk(piece.utf8))) }
        return answer.then(.send(Array(("0\r\n" + trailers.map { $0 + "\r\n" }.joined() + "\r\n").utf8)))
    }

    static func chunk(_ bytes: some Collection<UInt8>) -> [UInt8] {
        Array((String(bytes.count, radix: 16) + "\r\n").utf8) + Array(bytes) + [13, 10]
    }

    static let hang = Answer([.hang])
    static let reset = Answer([.reset])
    static let close = Answer([.close])

    // MARK: Changed

    func then(_ more: Step...) -> Answer { Answer(self.steps + more) }
    func then(_ other: Answer) -> Answer { Answer(self.steps + other.steps) }
    /// Waits for the gate first.
    func after(_ gate: Gate) -> Answer { Answer([.wait(gate)] + self.steps) }
    var closing: Answer { self.then(.close) }

    /// All its bytes.
    var bytes: [UInt8] {
        self.steps.flatMap { step -> [UInt8] in if case .send(let bytes) = step { bytes } else { [] } }
    }

    /// Only the first `count` bytes, then `end`.
    func broken(at count: Int, by end: Step) -> Answer { Answer([.send(Array(self.bytes.prefix(count))), end]) }

    /// Sends everything in one piece.
    private func joined() -> Answer { Answer([.send(self.bytes)]) }
}
