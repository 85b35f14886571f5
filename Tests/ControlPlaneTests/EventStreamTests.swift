import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Event streams of the REST interface", .gateway, .timeLimit(.minutes(5)))
struct EventStreamTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    /// The events of a stream that ends.
    private func events(_ target: String, fields: [String: String] = [:])
        async throws
        -> [JSONValue]
    {
        let reply = try await self.gateway.get(target, fields: fields)
        #expect(reply.status == 200 && reply.fields["content-type"] == "text/event-stream", "\(reply.text)")
        return reply.text.split(separator: "\n").filter { $0.hasPrefix("data: ") }
            .map { JSONValue(text: String($0.dropFirst(6))) }
    }

    @Test func connectionIsReportedFromItsOpeningToItsEnd() async throws {
        let id = try await self.gateway.open(self.gateway.echo, more: #","labels":{"team":"blue"}"#)
        _ = try await self.gateway.post("/v1/connections/\(id):send", #"{"text":"abc"}"#)
        _ = try await self.gateway.post("/v1/connections/\(id):receive")
        _ = try await self.gateway.request("DELETE", "/v1/connections/\(id)?code=4001&reason=done")
        let events = try await self.events(
            "/v1/events?after=0&connection=\(id)&type=opened,closed&limit=2")
        #expect(events.map { $0["type"]?.string } == ["opened", "closed"])
        #expect(events.allSatisfy { $0["connection"]?.string == id })
        let closed = events[1]
        #expect(closed["closeCode"]?.integer == 4001 && closed["closeReason"]?.string == "done")
        #expect(closed["receivedBytes"]?.integer == 3 && closed["sentBytes"]?.integer == 3)
        #expect(closed["labels"] == JSONValue(text: #"{"team":"blue"}"#))
    }

    @Test func eventsThatAreThereAlreadyAreSentTogether() async throws {
        for _ in 0..<4 { _ = try await self.gateway.open(self.gateway.raw) }
        // Both ends of each connection are connections of the gateway.
        let target = "/v1/events?after=0&type=opened&limit=8"
        #expect(try await self.events(target).count == 8)
        let exchange = HTTPExchange(self.gateway.control)
        defer { exchange.close() }
        try await exchange.send(Array("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
        let text = String(decoding: try await exchange.receiveToEnd(), as: UTF8.self)
        #expect(text.ranges(of: "event: opened\n").count == 8)
        // A chunk's size is a line that ends with CRLF; events end with LF.
        #expect(text.ranges(of: "\r\nid: ").count == 1)
    }

    @Test func missedEventsAreSentAfterTheLastEventID() async throws {
        var ids: [String] = []
        for _ in 0..<4 { ids.append(try await self.gateway.open(self.gateway.raw)) }
        // Both ends of each connection are connections of the gateway.
        let all = try await self.events("/v1/events?after=0&type=opened&limit=8")
        let opened = all.filter { $0["listener"] == nil }
        #expect(opened.map { $0["connection"]?.string } == ids)
        let numbers = opened.compactMap { $0["number"]?.integer }
        #expect(numbers == numbers.sorted() && Set(numbers).count == 4)
        let index = try #require(all.firstIndex { $0["connection"]?.string == ids[1] })
        let position = try #require(all[index]["position"]?.string)
        let missed = Array(all[(index + 1)...])
        let rest = try await self.events(
            "/v1/events?type=opened&limit=\(missed.count)", fields: ["Last-Event-ID": position])
        #expect(rest == missed)
    }

    @Test(
        arguments: ["1", "00000000.1", "1@a", "1@a/00000000,5@b/00000000"], [false, true])
    func positionOfAnotherProcessIsFollowedByAGapAndAllEvents(_ position: String, _ isField: Bool) async throws {
        var ids: [String] = []
        for _ in 0..<2 { ids.append(try await self.gateway.open(self.gateway.raw)) }
        // Both ends of each connection are connections of the gateway.
        let target = "/v1/events?type=opened&limit=4"
        let events = try await self.events(
            isField ? target : target + "&after=\(position)", fields: isField ? ["Last-Event-ID": position] : [:])
        #expect(events.map { $0["type"]?.string } == ["gap", "opened", "opened", "opened", "opened"])
        #expect(events.dropFirst().filter { $0["listener"] == nil }.map { $0["connection"]?.string } == ids)
        // The gap is reported once.
        let rest = try await self.events(target, fields: ["Last-Event-ID": events[0]["position"]?.string ?? ""])
        #expect(rest == Array(events.dropFirst()))
    }

    @Test func positionsOfTwoProcessesDiffer() async throws {
        let target = "/v1/events?after=0&type=opened&limit=1"
        _ = try await self.gateway.open(self.gateway.raw)
        let own = try #require(try await self.events(target)[0]["position"]?.string)
        let former = try await LoopbackGateway.run { former in
            _ = try await former.open(former.raw)
            let ids = try await former.get(target).text.split(separator: "\n").filter { $0.hasPrefix("id: ") }
            return String(try #require(ids.first).dropFirst(4))
        }
        let pattern = /([0-9a-f]{8})\.([0-9]+)/
        let (first, second) = (try #require(own.wholeMatch(of: pattern)), try #require(former.wholeMatch(of: pattern)))
        #expect(first.1 != second.1 && first.2 == second.2)
    }

    @Test func eventsThatAreNotKeptAreAGap() async throws {
        let id = try await self.gateway.open(self.gateway.raw)
        // Both ends of the connection are connections of the gateway.
        let events = try await self.events("/v1/events?type=opened&limit=2", fields: ["Last-Event-ID": "999999"])
        #expect(events.map { $0["type"]?.string } == ["gap", "opened", "opened"])
        #expect(events.first?["missedTo"]?.integer == 999_999)
        #expect(events.contains { $0["connection"]?.string == id })
    }

    @Test func quietStreamSendsHeartbeats() async throws {
        let exchange = HTTPExchange(self.gateway.control)
        defer { exchange.close() }
        try await exchange.send(Array("GET /v1/events?heartbeatMs=10 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8))
        for _ in 0..<3 { #expect(!(try await exchange.receive(through: ":\n\n").contains("data:"))) }
    }

    @Test(arguments: [
        "limit=0", "limit=x", "durationMs=-1", "durationMs=1e300", "durationMs=86400001", "durationMs=nan",
    ])
    func invalidBoundIsRefused(_ query: String) async throws {
        let id = try await self.gateway.open(self.gateway.raw)
        for path in ["/v1/events", "/v1/connections/\(id)/tap"] {
            let reply = try await self.gateway.get("\(path)?\(query)")
            #expect(reply.problem == "400 invalid-parameter \(query.prefix { $0 != "=" })")
        }
    }

    @Test func invalidFilterOrLastEventIDIsRefused() async throws {
        #expect(try await self.gateway.get("/v1/events?type=nonsense").problem == "400 invalid-parameter type")
        let reply = try await self.gateway.get("/v1/events", fields: ["Last-Event-ID": "x"])
        #expect(reply.problem == "400 invalid-header")
    }

    @Test func reloadsAreReported() async throws {
        _ = try await self.gateway.post("/v1/configuration:reload")
        self.gateway.setFile("listeners: 7")
        _ = try await self.gateway.post("/v1/configuration:reload")
        let events = try await self.events("/v1/events?after=0&type=reloaded,reloadFailed&limit=2")
        #expect(events.map { $0["type"]?.string } == ["reloaded", "reloadFailed"])
        #expect(events[1]["detail"]?.string?.contains("expected") == true)
    }

    @Test func tapCopiesTheTrafficOfAConnection() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let tap = HTTPExchange(self.gateway.control)
        defer { tap.close() }
        let request =
            "GET /v1/connections/\(id)/tap?limit=2 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        try await tap.send(Array(request.utf8))
        let head = try await tap.receive(through: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200"))
        _ = try await self.gateway.post("/v1/connections/\(id):send", #"{"text":"watched"}"#)
        let text = String(decoding: try await tap.receiveToEnd(), as: UTF8.self)
        #expect((head + text).components(of: "watched") == 2, "\(text)")
    }

    @Test func attachWithoutAnUpgradeIsRefused() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let reply = try await self.gateway.get("/v1/connections/\(id)/stream")
        #expect(reply.status == 426, "\(reply.text)")
        #expect(try await self.gateway.get("/v1/connections/\(id)").json["state"]?.string == "open")
    }
}

extension String {
    /// How often `text` occurs.
    fileprivate func components(of text: String) -> Int {
        self.ranges(of: text).count
    }
}
