import ControlAPI
import ControlPlane
import GatewayTestSupport
import Testing

@Suite("Asynchronous requests to the REST interface", .gateway, .timeLimit(.minutes(5)))
struct LongRunningOperationTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    private static let asynchronous = ["Prefer": "respond-async"]

    private static func ids(_ reply: HTTPReply) -> [String?] {
        reply.json["items"]?.items.map { $0["id"]?.string } ?? []
    }

    @Test func openingContinuesAsAnOperation() async throws {
        let body = #"{"url":"\#(self.gateway.echo)"}"#
        let started = try await self.gateway.post("/v1/connections", body, fields: Self.asynchronous)
        #expect(started.status == 202)
        let id = started.json["id"]?.string ?? ""
        #expect(started.fields["location"] == "/v1/operations/\(id)")
        #expect(started.json["operation"]?.string == "openConnection")
        let done = try await self.gateway.get("/v1/operations/\(id)", fields: ["Prefer": "wait=20"]).json
        #expect(done["state"]?.string == "succeeded" && done["status"]?.integer == 201)
        let connection = done["connection"]?.string ?? ""
        #expect(done["location"]?.string == "/v1/connections/\(connection)")
        #expect(done["answer"]?["state"]?.string == "open" && done["endedAt"] != nil)
        #expect(Self.ids(try await self.gateway.get("/v1/operations")) == [id])
        #expect(try await self.gateway.request("DELETE", "/v1/operations/\(id)").status == 204)
        #expect(try await self.gateway.get("/v1/operations/\(id)").problem == "404 unknown-operation")
        #expect(try await self.gateway.get("/v1/connections/\(connection)").json["state"]?.string == "open")
    }

    @Test func failureIsFoundInTheOperation() async throws {
        let nothing = "ws://127.0.0.1:\(self.gateway.port("web"))/nothing"
        let started = try await self.gateway.post(
            "/v1/connections", #"{"url":"\#(nothing)"}"#, fields: Self.asynchronous)
        let path = started.fields["location"] ?? ""
        let done = try await self.gateway.get(path, fields: ["Prefer": "wait=20"]).json
        #expect(done["state"]?.string == "failed" && done["status"]?.integer == 502)
        #expect(done["answer"]?["code"]?.string == "handshake-refused")
        #expect(done["connection"] != nil && done["answer"]?["connection"]?["id"] == done["connection"])
    }

    @Test func requestThatWaitsLongEnoughHasItsOwnResponse() async throws {
        let body = #"{"url":"\#(self.gateway.raw)"}"#
        let reply = try await self.gateway.post("/v1/connections", body, fields: ["Prefer": "wait=20"])
        #expect(reply.status == 201 && reply.json["state"]?.string == "open")
        #expect(Self.ids(try await self.gateway.get("/v1/operations")) == [])
    }

    @Test func invalidRequestIsRefusedAtOnce() async throws {
        let reply = try await self.gateway.post("/v1/connections", #"{"url":"nonsense"}"#, fields: Self.asynchronous)
        #expect(reply.problem == "422 invalid-value /url")
        #expect(Self.ids(try await self.gateway.get("/v1/operations")) == [])
    }

    @Test func reloadIsAnOperation() async throws {
        let started = try await self.gateway.post("/v1/configuration:reload", fields: Self.asynchronous)
        #expect(started.status == 202)
        let path = started.fields["location"] ?? ""
        let done = try await self.gateway.get(path, fields: ["Prefer": "wait=20"]).json
        #expect(done["operation"]?.string == "reloadConfiguration" && done["state"]?.string == "succeeded")
        #expect(done["answer"] == JSONValue(text: #"{"applied":true,"changes":[]}"#))
        self.gateway.setFile("nonsense")
        let refused = try await self.gateway.post(
            "/v1/configuration:reload", fields: ["Prefer": "respond-async, wait=20"])
        #expect(refused.status == 422)
    }

    /// Their peer does not answer: the gateway's side of both connections is suspended.
    @Test(arguments: ["ping", "startSecureConnection"])
    func verbOfAConnectionIsAnsweredAtOnce(_ verb: String) async throws {
        let id = try await self.gateway.open(verb == "ping" ? self.gateway.echo : self.gateway.raw)
        var peers: [String?] = []
        try await self.gateway.wait {
            peers = Self.ids(try await self.gateway.get("/v1/connections?direction=accepted"))
            return !peers.isEmpty
        }
        for peer in peers.compactMap(\.self) {
            #expect(try await self.gateway.post("/v1/connections/\(peer):suspend").status == 200)
        }
        let body = verb == "ping" ? nil : "{}"
        let started = try await self.gateway.post("/v1/connections/\(id):\(verb)", body, fields: Self.asynchronous)
        #expect(started.status == 202 && started.json["state"]?.string == "running", "\(started.text)")
        let path = started.fields["location"] ?? ""
        #expect(try await self.gateway.request("DELETE", path).json["state"]?.string == "cancelled")
        #expect(try await self.gateway.get(path).json["operation"]?.string == verb)
        let refused = try await self.gateway.post("/v1/connections/999:\(verb)", body, fields: Self.asynchronous)
        #expect(refused.problem == "404 unknown-connection")
    }

    // MARK: Idempotency keys

    @Test func requestsWithOneKeyAreOneRequest() async throws {
        let body = #"{"url":"\#(self.gateway.raw)"}"#
        let fields = ["Idempotency-Key": "once"]
        let first = try await self.gateway.post("/v1/connections", body, fields: fields)
        let second = try await self.gateway.post("/v1/connections", body, fields: fields)
        #expect(first.status == 201)
        #expect(second.status == first.status && second.body == first.body)
        #expect(second.fields["location"] == first.fields["location"])
        let opened = try await self.gateway.get("/v1/connections?direction=opened")
        #expect(Self.ids(opened).count == 1)
    }

    @Test func asynchronousRequestsWithOneKeyAreOneOperation() async throws {
        let body = #"{"url":"\#(self.gateway.raw)"}"#
        let fields = ["Prefer": "respond-async", "Idempotency-Key": "once"]
        let first = try await self.gateway.post("/v1/connections", body, fields: fields)
        let second = try await self.gateway.post("/v1/connections", body, fields: fields)
        #expect(first.status == 202 && second.status == 202)
        #expect(first.json["id"] != nil && first.json["id"] == second.json["id"])
        #expect(first.json["connection"] != nil && first.json["connection"] == second.json["connection"])
        #expect(Self.ids(try await self.gateway.get("/v1/connections?direction=opened")).count == 1)
    }

    @Test func keyOfAnotherRequestIsRefused() async throws {
        let fields = ["Idempotency-Key": "once"]
        _ = try await self.gateway.post("/v1/connections", #"{"url":"\#(self.gateway.raw)"}"#, fields: fields)
        let other = try await self.gateway.post("/v1/connections", #"{"url":"\#(self.gateway.echo)"}"#, fields: fields)
        #expect(other.problem == "422 key-reused")
        let elsewhere = try await self.gateway.post("/v1/drains", #"{"all":true}"#, fields: fields)
        #expect(elsewhere.problem == "422 key-reused")
    }

    @Test(arguments: [0, 1, 255, 256])
    func keyHasOneTo255Bytes(_ count: Int) async throws {
        let fields = ["Idempotency-Key": String(repeating: "k", count: count)]
        let reply = try await self.gateway.post("/v1/drains", #"{"all":true,"preview":true}"#, fields: fields)
        if (1...255).contains(count) {
            #expect(reply.status == 200)
        } else {
            #expect(reply.problem == "400 invalid-header")
            #expect(reply.detail == "Idempotency-Key must have 1 to 255 bytes.")
        }
    }

    @Test func refusedRequestIsKeptAndRetryableOneIsNot() async throws {
        let fields = ["Idempotency-Key": "once"]
        for _ in 0..<2 {
            let reply = try await self.gateway.post("/v1/connections", #"{"url":"nonsense"}"#, fields: fields)
            #expect(reply.problem == "422 invalid-value /url")
        }
        let again = ["Idempotency-Key": "again"]
        self.gateway.phase = .draining
        let body = #"{"url":"\#(self.gateway.raw)"}"#
        #expect(try await self.gateway.post("/v1/connections", body, fields: again).problem == "503 draining")
        self.gateway.phase = .ready
        #expect(try await self.gateway.post("/v1/connections", body, fields: again).status == 201)
    }
}
