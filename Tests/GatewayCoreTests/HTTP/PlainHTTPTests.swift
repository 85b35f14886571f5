import ByteKernels
import GatewayConfiguration
import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import Synchronization
import TestSupport
import Testing
import WireText

/// Answers with the method and the body of each request; `/slow` is not answered before `release`.
final class RecordingResponder: HTTPResponder {
    let methods = ["GET", "HEAD", "POST"]
    let bodyLimit: Int
    private let held = Mutex<[Held]>([])

    private struct Held: @unchecked Sendable {
        let exchange: PlainExchange
    }

    init(bodyLimit: Int = 1000) {
        self.bodyLimit = bodyLimit
    }

    func respond(to request: PlainRequest, _ exchange: PlainExchange) {
        guard request.head.target != "/slow" else { return self.held.withLock { $0.append(Held(exchange: exchange)) } }
        exchange.respond(200, text: "\(request.head.method) \(request.head.target) \(request.body.count)")
    }

    func release() {
        for one in self.held.withLock({ $0 }) { one.exchange.respond(200, text: "released") }
    }
}

/// Streams without an end, as server-sent events do.
final class StreamingResponder: HTTPResponder {
    let methods = ["GET"]
    let bodyLimit = 0
    private let last = Mutex<Streaming?>(nil)

    final class Streaming: HTTPBodySource, @unchecked Sendable {
        let exchange: PlainExchange
        private(set) var sawEnd = false

        init(_ exchange: PlainExchange) {
            self.exchange = exchange
        }

        func send(_ text: String) { Array(text.utf8).withRawSpan { _ = self.exchange.write($0) } }
        func outputProgressed(_ exchange: PlainExchange) {}
        func inputClosed(_ exchange: PlainExchange) { exchange.finish() }
        func drain(_ exchange: PlainExchange) { exchange.finish() }
        func exchangeEnded() { self.sawEnd = true }
    }

    var streaming: Streaming? { self.last.withLock { $0 } }

    func respond(to request: PlainRequest, _ exchange: PlainExchange) {
        let streaming = Streaming(exchange)
        self.last.withLock { $0 = streaming }
        _ = exchange.begin(200, [FieldLine("Content-Type", "text/event-stream")], .open, source: streaming)
    }
}

@Suite("Plain HTTP on a WebSocket listener")
struct PlainHTTPTests {
    private static let configuration = """
        listeners: [{name: web, listen: "ws://10.1.0.1:1001", max-header-size: 1KiB, handshake-timeout: 5s}]
        routes:
          - {name: plain, path: "/{path...}", target: page}
          - {name: events, path: /events, target: page}
          - {name: echo, path: /echo, target: echo}
          - {name: site, path: /site, target: page, origins: ["https://a.example"]}
        """

    private let responder = RecordingResponder()
    private let streamer = StreamingResponder()

    private func scene() throws -> GatewayScene {
        try GatewayScene(
            Self.configuration,
            responders: ["plain": self.responder, "events": self.streamer, "site": self.responder])
    }

    @Test func connectionIsKeptForTheNextRequest() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web()
        for number in 1...3 {
            peer.send("GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n")
            let response = try #require(reader.next(scene))
            #expect(response.status == 200 && response.text == "GET /\(number) 0\n")
            #expect(response["Connection"] == nil && response["Date"]?.hasSuffix("GMT") == true)
        }
        #expect(scene.gateway.liveCount == 1 && scene.gateway.openings.count == 1)
        peer.close()
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/clean"])
        scene.finish()
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let scene = try self.scene()
        let requests =
            (1...50).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" } + ["GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"]
        let (_, reader) = try scene.web(requests.joined() + "\r\n\r\nHEAD /last HTTP/1.1\r\nHost: a\r\n\r\n")
        for number in 1...50 { #expect(reader.next(scene)?.text == "GET /\(number) 0\n") }
        scene.settle()
        #expect(reader.rest() == [])
        scene.gateway.perform { _ in self.responder.release() }
        #expect(reader.next(scene)?.text == "released\n")
        let last = try #require(reader.next(scene, isHead: true))
        #expect(last["Content-Length"] == "13" && reader.rest() == [])
        scene.finish()
    }

    /// RFC 9112 §2.2.
    @Test func emptyLineBeforeARequestIsSkipped() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web("\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n\r\n")
        #expect(reader.next(scene)?.text == "GET /1 0\n")
        // The connection is idle: the deadline of a head does not run.
        _ = scene.network.run(for: .seconds(30))
        #expect(reader.rest() == [] && !peer.sawEnd)
        peer.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.text == "GET /2 0\n")
        let (opening, _) = try scene.web("\r\n")
        opening.send(RawWebSocketPeer.request(to: "/echo"))
        #expect(scene.head(RawWebSocketPeer(opening, isClient: true))?.hasPrefix("HTTP/1.1 101 ") == true)
        scene.finish()
    }

    @Test(arguments: ["GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"])
    func connectionEndsWhereTheClientDoesNotKeepIt(_ request: String) throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web(request + "GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        let response = try #require(reader.next(scene))
        #expect(response["Connection"] == "close")
        #expect(scene.run { peer.sawEnd } && reader.rest() == [])
        scene.finish()
    }

    @Test func bodiesAreReadWithAndWithoutChunks() throws {
        let scene = try self.scene()
        let (_, reader) = try scene.web(
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
                + "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
                + "GET /c HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.text == "POST /a 5\n")
        #expect(reader.next(scene)?.text == "POST /b 7\n")
        #expect(reader.next(scene)?.text == "GET /c 0\n")
        scene.finish()
    }

    @Test func expectContinueIsAnsweredWith100() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web(
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        #expect(reader.next(scene)?.status == 100)
        peer.send("hello")
        #expect(reader.next(scene)?.text == "POST /a 5\n")
        scene.finish()
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let request: String
        let status: Int
        var field: (name: String, value: String)?
        var testDescription: String { "\(self.status) \(self.request.debugDescription)" }
    }

    static let refusals: [Refusal] = [
        Refusal(
            request: "DELETE /a HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, field: ("Allow", "GET, HEAD, POST")),
        Refusal(request: "GET /a HTTP/1.1\r\n\r\n", status: 400),
        Refusal(request: "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", status: 400),
        Refusal(request: "GET /a HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", status: 400),
        Refusal(request: "GET /a HTTP/1.1\r\nHost: a b\r\n\r\n", status: 400),
        Refusal(request: "GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n", status: 400),
        Refusal(request: "GET /a HTTP/1.1\r\nHost: b@a\r\n\r\n", status: 400),
        Refusal(request: "GET /a HTTP/1.1\r\nHost: a:65536\r\n\r\n", status: 400),
        Refusal(
            request: "GET /a HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\nOrigin: https://b.example\r\n\r\n",
            status: 400),
        Refusal(request: "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
        Refusal(request: "GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
        Refusal(request: "GET /a HTTP/2.0\r\nHost: a\r\n\r\n", status: 505),
        Refusal(request: "GET /a HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", status: 417),
        Refusal(request: "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", status: 413),
        Refusal(
            request: "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n", status: 413),
        Refusal(
            request: "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", status: 413),
        Refusal(
            request: "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            status: 400),
        Refusal(request: "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", status: 501),
        Refusal(
            request: "GET /a HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 1100))\r\n\r\n", status: 431),
        Refusal(request: "GET /a HTTP/1.1\r\nHost : a\r\n\r\n", status: 400),
        // A route with only a WebSocket target, as without any route for plain HTTP.
        Refusal(request: "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", status: 426, field: ("Upgrade", "websocket")),
        Refusal(request: "HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, field: ("Allow", "GET")),
        Refusal(
            request: "HEAD /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", status: 413),
        Refusal(request: "GET /site HTTP/1.1\r\nHost: a\r\nOrigin: https://b.example\r\n\r\n", status: 403),
    ]

    @Test func refusalOfHEADHasNoBody() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web(
            "GET /first HTTP/1.1\r\nHost: a\r\n\r\nHEAD /a HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n")
        #expect(reader.next(scene)?.status == 200)
        #expect(reader.next(scene, isHead: true)?.status == 417)
        #expect(scene.run { peer.sawEnd } && reader.rest() == [])
        scene.finish()
    }

    @Test(arguments: refusals, [true, false])
    func requestsThatBreakARuleEndTheConnection(_ refusal: Refusal, _ isFirst: Bool) throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web(isFirst ? "" : "GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
        if !isFirst { #expect(reader.next(scene)?.status == 200) }
        peer.send(refusal.request)
        // The first request is refused like an opening handshake, but HEAD never has a body (RFC 9110 §9.3.2).
        let response = try #require(reader.next(scene, isHead: refusal.request.hasPrefix("HEAD")))
        #expect(response.status == refusal.status && response["Connection"]?.hasPrefix("close") == true)
        #expect(response["Date"]?.hasSuffix("GMT") == true)
        if let field = refusal.field { #expect(response[field.name] == field.value) }
        #expect(scene.run { peer.sawEnd } && reader.rest() == [])
        peer.close()
        scene.settle()
        #expect(scene.gateway.endings.last?.reason.hasSuffix("refused-request(\(refusal.status))") == true)
        scene.finish()
    }

    @Test func webSocketOpensOnAConnectionThatCarriedRequests() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web("GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.status == 200)
        peer.send(RawWebSocketPeer.request(to: "/echo"))
        let socket = RawWebSocketPeer(peer, isClient: true)
        #expect(scene.head(socket)?.hasPrefix("HTTP/1.1 101 ") == true)
        socket.send(1, Array("hello".utf8))
        #expect(scene.run { socket.frames.first?.payload == Array("hello".utf8) })
        #expect(scene.gateway.liveCount == 1)
        scene.finish()
    }

    // MARK: Deadlines

    @Test func idleConnectionIsClosed() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.status == 200)
        _ = scene.network.run(for: .seconds(59))
        #expect(!peer.sawEnd)
        _ = scene.network.run(for: .seconds(2))
        #expect(peer.sawEnd && peer.failure == nil)
        peer.close()
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["gateway/relaying/idle-timeout"])
        scene.finish()
    }

    @Test(arguments: [
        ("GET /a HT", Duration.seconds(5)),
        ("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab", .seconds(30)),
    ])
    func requestThatDoesNotArriveInTimeIsRefused(_ part: String, _ timeout: Duration) throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web("GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.status == 200)
        peer.send(part)
        _ = scene.network.run(for: timeout - .milliseconds(100))
        #expect(reader.rest() == [])
        _ = scene.network.run(for: .milliseconds(200))
        #expect(reader.next(scene)?.status == 408)
        #expect(scene.run { peer.sawEnd })
        peer.close()
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/handshake-timeout"])
        scene.finish()
    }

    @Test func clientThatClosesAfterItsRequestIsAnswered() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.finish()
        scene.settle()
        scene.gateway.perform { _ in self.responder.release() }
        #expect(reader.next(scene)?.text == "released\n")
        #expect(scene.run { peer.sawEnd } && peer.failure == nil)
        scene.finish()
    }

    @Test func partOfARequestAtTheEndOfInputIsTruncation() throws {
        let scene = try self.scene()
        let (peer, _) = try scene.web("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HT")
        peer.finish()
        #expect(scene.run { peer.sawEnd })
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/truncated"])
        scene.finish()
    }

    // MARK: Responses without an end

    @Test func eventsAreStreamedInChunksUntilTheClientCloses() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(scene.run { self.streamer.streaming != nil })
        for word in ["one", "two"] {
            scene.gateway.perform { _ in self.streamer.streaming?.send(word) }
            _ = scene.network.run(for: .seconds(3600))
        }
        #expect(String(decoding: reader.rest(), as: UTF8.self).hasSuffix("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n"))
        peer.finish()
        #expect(reader.next(scene)?.text == "onetwo")
        #expect(self.streamer.streaming?.sawEnd == true)
        scene.finish()
    }

    @Test func eventsForAnOldClientEndWithTheConnection() throws {
        let scene = try self.scene()
        let (peer, _) = try scene.web("GET /events HTTP/1.0\r\n\r\n")
        #expect(scene.run { self.streamer.streaming != nil })
        scene.gateway.perform { _ in
            self.streamer.streaming?.send("one")
            self.streamer.streaming?.exchange.finish()
        }
        #expect(scene.run { peer.sawEnd })
        let text = String(decoding: peer.received, as: UTF8.self)
        #expect(text.hasSuffix("\r\n\r\none") && !text.contains("chunked"))
        scene.finish()
    }

    @Test func clientThatReadsNothingIsReset() throws {
        let scene = try self.scene()
        let (peer, _) = try scene.web("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.isReading = false
        #expect(scene.run { self.streamer.streaming != nil })
        let piece = String(repeating: "x", count: 64 << 10)
        // Until the kernel takes no more.
        for _ in 0..<20 {
            scene.gateway.perform { _ in
                while let stream = self.streamer.streaming, !stream.exchange.isBehind { stream.send(piece) }
            }
            scene.settle()
        }
        let queued = scene.gateway.parts[0].largestQueue(onRoute: "events")
        #expect((1...(256 << 10)).contains(queued))
        _ = scene.network.run(for: .seconds(120))
        #expect(peer.failure == .reset && self.streamer.streaming?.sawEnd == true)
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/closing-timeout"])
        scene.finish()
    }

    private func metrics(_ scene: GatewayScene) -> GatewayMetrics {
        var metrics = GatewayMetrics()
        scene.gateway.perform { metrics = $0.ownMetrics }
        return metrics
    }

    @Test func trafficStaysWithTheRouteOfItsRequest() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web()
        var (received, sent): ([UInt64], [UInt64]) = ([], [])
        for target in ["/a", "/site", "/b"] {
            peer.send("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(reader.next(scene)?.status == 200)
            scene.settle()
            let plain = try #require(self.metrics(scene).traffic["plain"])
            received.append(plain.messagesReceived)
            sent.append(plain.messagesSent)
        }
        #expect(received == [1, 1, 2] && sent == [1, 1, 2])
        let before = self.metrics(scene).traffic
        peer.send(RawWebSocketPeer.request(to: "/echo"))
        #expect(scene.head(RawWebSocketPeer(peer, isClient: true))?.hasPrefix("HTTP/1.1 101 ") == true)
        let after = self.metrics(scene).traffic
        #expect(before["site"]?.messagesSent == 1 && after["site"] == before["site"])
        #expect(after["plain"]?.messagesSent == 2 && after["echo"] != nil)
        #expect(after.values.reduce(0) { $0 + $1.connections } == 2)
        peer.close()
        scene.settle()
        #expect(self.metrics(scene).traffic == after)
        scene.finish()
    }

    @Test func connectionHasTheRouteOfItsLatestRequest() throws {
        let scene = try self.scene()
        let (_, reader) = try scene.web("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.status == 200)
        #expect(self.metrics(scene).live.keys.map(\.route) == ["plain"])
        let (refused, responses) = try scene.web("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(responses.next(scene)?.status == 200)
        refused.send("GET /site HTTP/1.1\r\nHost: a\r\nOrigin: https://b.example\r\n\r\n")
        #expect(responses.next(scene)?.status == 403)
        refused.close()
        scene.settle()
        let ends = scene.gateway.journal.events(after: 0).events.filter { $0.kind == .closed }
        #expect(ends.count == 1 && ends.allSatisfy { $0.route == nil })
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/refused-request(403)"])
        scene.finish()
    }

    @Test func connectionsAreReportedAsHTTP() throws {
        let scene = try self.scene()
        let (_, reader) = try scene.web("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.status == 200)
        let group = GatewayMetrics.Group(route: "plain", kind: .http, isAccepted: true, stage: .open)
        #expect(self.metrics(scene).live == [group: 1])
        #expect(scene.gateway.shared.withAdmission { $0.connections } == 1)
        scene.finish()
    }

    // MARK: Draining

    @Test func drainClosesIdleConnectionsAndFinishesResponses() throws {
        let scene = try self.scene()
        let (idle, first) = try scene.web("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(first.next(scene)?.status == 200)
        let (busy, second) = try scene.web("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        let (streaming, _) = try scene.web("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(scene.run { scene.gateway.openings.count == 3 && self.streamer.streaming != nil })
        var settings = DrainSettings()
        settings.closeSpread = .zero
        var isEmpty = false
        scene.gateway.drain(settings) { isEmpty = true }
        #expect(scene.run { idle.sawEnd && streaming.sawEnd } && !busy.sawEnd && !isEmpty)
        scene.gateway.perform { _ in self.responder.release() }
        let response = try #require(second.next(scene))
        #expect(response.text == "released\n" && response["Connection"] == "close")
        #expect(scene.run { busy.sawEnd })
        for peer in [idle, busy, streaming] { peer.close() }
        #expect(scene.run { isEmpty })
        #expect(Set(scene.gateway.endings.map(\.reason)) == ["operator/relaying/drained"])
        scene.finish()
    }
}
