import StreamTransport
import TestSupport
import Testing

@Suite("Rooms by plain HTTP for pages of other origins")
struct RoomStreamTests {
    private static let refusals: [(request: String, fields: String, status: Int)] = [
        ("PUT", "", 405),
        ("POST", "Content-Length: 300000\r\n", 413),
        ("POST", "Content-Length: 300000\r\nExpect: 100-continue\r\n", 413),
        ("POST", "Transfer-Encoding: chunked\r\n\r\n493e0\r\n", 413),
        ("POST", "Content-Length: 1\r\n\r\n[", 400),
    ]

    @Test(arguments: refusals)
    func refusalsCanBeReadWhereTheOriginIsAllowed(_ refusal: (request: String, fields: String, status: Int)) throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes: [{name: events, path: /events, target: room-events, origins: ["https://a.example"]}]
            """)
        let response = try scene.fetch(
            "/events", "Origin: https://a.example\r\n\(refusal.fields)", method: refusal.request)
        #expect(response.status == refusal.status)
        #expect(response["Access-Control-Allow-Origin"] == "https://a.example" && response["Vary"] == "Origin")
        scene.finish()
    }

    @Test(arguments: [("GET", "?cf_connect=%7B%22token%22:%22x%22%7D", ""), ("POST", "", #"{"token":"x"}"#)])
    func streamThatEndsAtOnceSaysThatTheConnectionCloses(
        _ request: (method: String, query: String, body: String)
    ) throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes: [{name: events, path: /events, target: room-events}]
            """)
        let client = try scene.client(1001)
        let length = request.body.isEmpty ? "" : "Content-Length: \(request.body.utf8.count)\r\n"
        let head = "\(request.method) /events\(request.query) HTTP/1.1\r\nHost: a.example\r\n\(length)\r\n"
        client.send(Array((head + request.body).utf8))
        #expect(scene.run { client.sawEnd })
        let answer = String(decoding: client.takeReceived(), as: UTF8.self)
        #expect(answer.contains("\r\nConnection: close\r\n") && answer.contains("3500"), "\(answer)")
        scene.finish()
    }

    // MARK: Publishing

    /// A request is in no room: it publishes for a client that may enter it.
    @Test(arguments: [
        ("open", 200), ("users", 403), ("read-only", 403), ("full", 413), ("no:policy", 404), ("", 400),
    ])
    func postPublishesWhereItsClientMayEnter(_ room: String, _ status: Int) throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes: [{name: events, path: /events, target: room-events}]
            rooms:
              policies:
                - {name: users, pattern: users, subscribe: users}
                - {name: read-only, pattern: read-only, publish: nobody}
                - {name: full, pattern: full, max-message-size: 4}
                - {name: open, pattern: open}
            """)
        let body = #"{"publish":{"channel":"\#(room)","data":"hello"}}"#
        let (peer, reader) = try scene.web(
            "POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        #expect(reader.next(scene)?.status == status)
        peer.close()
        scene.finish()
    }

    private static let publications = [
        #"{"publish":{"channel":"x","data":1}}"#,
        #"{"id":1,"connect":{}}"# + "%0A" + #"{"id":2,"publish":{"channel":"x","data":1}}"#,
    ]

    /// Any page can make its readers' browsers send a GET, without an `Origin` that a route could refuse.
    @Test(arguments: publications)
    func getPublishesNothing(_ request: String) throws {
        let scene = try self.rooms()
        let member = try EventClient(scene, #""x":{}"#)
        _ = member.read(until: "id: ")
        let response = try scene.fetch("/events?cf_connect=\(request.replacing("\"", with: "%22"))")
        #expect(response.status == 400)
        try self.publish(2, scene)
        _ = member.read(until: #""data":2,"#)
        #expect(member.publications == [2])
        scene.finish()
    }

    // MARK: Ids of events

    /// Events as a client of one connection reads them.
    private final class EventClient {
        let peer: ScriptedPeer
        private let scene: GatewayScene
        private var text = ""

        init(_ scene: GatewayScene, _ subscriptions: String, lastEventID: String? = nil, fields: String = "") throws {
            self.scene = scene
            self.peer = try scene.client(1001)
            let query = #"{"subs":{\#(subscriptions)}}"#.replacing("\"", with: "%22")
            let field = lastEventID.map { "Last-Event-ID: \($0)\r\n" } ?? ""
            self.peer.send("GET /events?cf_connect=\(query) HTTP/1.1\r\nHost: a\r\n\(fields)\(field)\r\n")
        }

        /// What came until this text, without the framing of chunks.
        func read(until end: String) -> String {
            #expect(
                self.scene.run {
                    self.text += String(decoding: self.peer.takeReceived(), as: UTF8.self)
                    return self.text.contains(end)
                }, "\(self.text)")
            return self.text
        }

        /// Id of the last event that has one; `nil` if none has.
        var lastID: String? {
            self.text.split(separator: "\n").last { $0.hasPrefix("id: ") }.map { String($0.dropFirst(4)) }
        }

        /// Contents of publications, in their order.
        var publications: [Int] {
            self.text.split(separator: #""data":"#).dropFirst().compactMap { Int($0.prefix { $0.isNumber }) }
        }
    }

    private func rooms(_ headers: String = "") throws -> GatewayScene {
        try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"\(headers)}]
            routes: [{name: events, path: /events, target: room-events}]
            rooms:
              policies:
                - {name: plain, pattern: "plain", publish: everyone}
                - {name: all, pattern: "*", publish: everyone, history-size: 50, recovery: stream}
            """)
    }

    private func publish(_ data: Int, in room: String = "x", _ scene: GatewayScene) throws {
        let body = #"{"publish":{"channel":"\#(room)","data":\#(data)}}"#
        let (peer, reader) = try scene.web(
            "POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        #expect(reader.next(scene)?.status == 200)
        peer.close()
    }

    /// As a browser's EventSource does it: the same request, with the id of the last event.
    @Test func clientThatIsCutAtAnyEventGetsEachPublicationOnce() throws {
        let scene = try self.rooms()
        var client = try EventClient(scene, #""x":{},"y":{}"#)
        _ = client.read(until: "id: ")
        var heard: [Int] = []
        for round in 0..<4 {
            let seen = 10 * round
            for number in 0..<3 {
                try self.publish(seen + number, in: number == 1 ? "y" : "x", scene)
                _ = client.read(until: #""data":\#(seen + number),"#)
            }
            heard += client.publications
            let id = try #require(client.lastID)
            client.peer.reset()
            scene.settle()
            try self.publish(seen + 3, in: "y", scene)
            try self.publish(seen + 4, in: "x", scene)
            client = try EventClient(scene, #""x":{},"y":{}"#, lastEventID: id)
            #expect(!client.read(until: "id: ").contains("HTTP/1.1 4"))
        }
        heard += client.publications
        #expect(heard.sorted() == (0..<4).flatMap { round in (0..<5).map { 10 * round + $0 } })
        scene.finish()
    }

    @Test func lastEventIDCountsInPlaceOfThePositionInTheRequest() throws {
        let scene = try self.rooms()
        let first = try EventClient(scene, #""x":{}"#)
        _ = first.read(until: "id: ")
        let epoch = try #require(first.lastID?.split(separator: "=").last?.split(separator: ".").first)
        for number in 1...3 { try self.publish(number, scene) }
        _ = first.read(until: #""data":3,"#)
        let known = #""x":{"recover":true,"offset":1,"epoch":"\#(epoch)"}"#
        let plain = try EventClient(scene, known)
        _ = plain.read(until: "id: ")
        #expect(plain.publications == [2, 3])
        let again = try EventClient(scene, known, lastEventID: "x=\(epoch).2")
        _ = again.read(until: "id: ")
        #expect(again.publications == [3] && again.lastID == "x=\(epoch).3")
        scene.finish()
    }

    /// Its request does not name it.
    @Test func positionInARoomThatTheServerNamesOutlastsAConnectionWithoutTheRoom() throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001", forwarding-trusted: [10.0.0.0/8]}]
            routes: [{name: events, path: /events, target: room-events}]
            rooms:
              user-header: X-User
              personal-room: "#{user}"
              policies: [{name: all, pattern: "*", history-size: 50, recovery: stream, max-members: 1}]
            """)
        let fields = "X-User: ada\r\n"
        let first = try EventClient(scene, "", fields: fields)
        _ = first.read(until: "id: ")
        let id = try #require(first.lastID)
        #expect(id.hasPrefix("%23ada="))
        let second = try EventClient(scene, #""x":{}"#, lastEventID: id, fields: fields)
        _ = second.read(until: "id: ")
        let ids = try #require(second.lastID)
        #expect(ids.contains("x=") && ids.contains(id), "\(ids)")
        scene.finish()
    }

    /// A browser would not come again after a refusal.
    @Test(arguments: ["nonsense", "x=e.1&", "%FF=e.1", String(repeating: "x", count: 3000), "x=other.7", "y=e.1"])
    func lastEventIDThatIsOfNoUseIsIgnored(_ id: String) throws {
        let scene = try self.rooms()
        try self.publish(1, scene)
        let client = try EventClient(scene, #""x":{}"#, lastEventID: id)
        let text = client.read(until: "id: x=")
        #expect(text.hasPrefix("HTTP/1.1 200") && !text.contains(#""recovered":true"#) && client.publications == [])
        try self.publish(2, scene)
        _ = client.read(until: #""data":2,"#)
        scene.finish()
    }

    @Test func eventsOfRoomsWithoutRecoveryHaveNoIDs() throws {
        let scene = try self.rooms()
        let client = try EventClient(scene, #""plain":{}"#)
        _ = client.read(until: "connect")
        try self.publish(1, in: "plain", scene)
        _ = client.read(until: #""data":1"#)
        #expect(client.lastID == nil)
        scene.finish()
    }

    /// A request with the id must not be larger than the listener allows.
    @Test func idIsNoLongerThanAQuarterOfAHead() throws {
        let scene = try self.rooms(", max-header-size: 1KiB")
        let name = String(repeating: "x", count: 230)
        let client = try EventClient(scene, #""\#(name)":{}"#)
        _ = client.read(until: "id: \(name)")
        let other = try EventClient(scene, #""\#(name)y":{},"\#(name)z":{}"#)
        _ = other.read(until: "id: \n\n")
        scene.finish()
    }

    @Test func linesHaveNoIDs() throws {
        let scene = try self.rooms()
        let body = #"{"subs":{"x":{}}}"#
        let peer = try scene.client(1001)
        peer.send(
            "POST /events HTTP/1.1\r\nHost: a\r\nLast-Event-ID: x=e.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        var text = ""
        try self.publish(1, scene)
        #expect(
            scene.run {
                text += String(decoding: peer.takeReceived(), as: UTF8.self)
                return text.contains("connect")
            })
        #expect(!text.contains("id: ") && !text.contains("was_recovering"), "\(text)")
        scene.finish()
    }
}
