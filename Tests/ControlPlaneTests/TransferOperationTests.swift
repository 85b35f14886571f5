import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Transfer operations of the REST interface", .gateway, .timeLimit(.minutes(5)))
struct TransferOperationTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    private static let waiting = ["Prefer": "wait=20"]

    /// Downloads the gateway's own `/version`.
    private func download(more: String = "") async throws -> HTTPReply {
        try await self.gateway.post(
            "/v1/transfers", #"{"url":"\#(self.gateway.control)/version"\#(more)}"#, fields: Self.waiting)
    }

    @Test func finishedDownloadKeepsItsContentInMemory() async throws {
        let done = try await self.download(more: #","description":"a","labels":{"x":"1"}"#)
        #expect(done.status == 201 && done.json["state"]?.string == "finished", "\(done.text)")
        let id = done.json["id"]?.string ?? ""
        #expect(done.fields["location"] == "/v1/transfers/\(id)")
        #expect(done.json["kind"]?.string == "data" && done.json["method"]?.string == "GET")
        #expect(done.json["response"]?["status"]?.integer == 200)
        let content = try await self.gateway.get("/version").text
        #expect(done.json["contentBytes"]?.integer == content.utf8.count)
        #expect(done.json["description"]?.string == "a")
        let whole = try await self.gateway.get("/v1/transfers/\(id)/content")
        #expect(whole.status == 200 && whole.fields["x-content-type-options"] == "nosniff")
        #expect(whole.text == content)
    }

    @Test(arguments: [("bytes=0-7", 206), ("bytes=-2", 206), ("lines=1-2", 200)])
    func rangeOfTheContentIsSent(_ range: String, _ status: Int) async throws {
        let content = try await self.gateway.get("/version").body
        let id = try await self.download().json["id"]?.string ?? ""
        let reply = try await self.gateway.get("/v1/transfers/\(id)/content", fields: ["Range": range])
        #expect(reply.status == status)
        let expected = ["bytes=0-7": Array(content.prefix(8)), "bytes=-2": Array(content.suffix(2))]
        #expect(reply.body == expected[range] ?? content)
        let beyond = try await self.gateway.get("/v1/transfers/\(id)/content", fields: ["Range": "bytes=1000-"])
        #expect(beyond.problem == "416 range-not-satisfiable")
        #expect(beyond.fields["content-range"] == "bytes */\(content.count)")
    }

    @Test func statusOfTheServerIsNoFailure() async throws {
        let reply = try await self.gateway.post(
            "/v1/transfers", #"{"url":"\#(self.gateway.control)/nothing"}"#, fields: Self.waiting)
        #expect(reply.json["state"]?.string == "finished" && reply.json["error"] == nil)
        #expect(reply.json["response"]?["status"]?.integer == 404)
    }

    @Test func unreachableServerIsAFailure() async throws {
        let reply = try await self.gateway.post(
            "/v1/transfers", #"{"url":"http://127.0.0.1:1/"}"#, fields: Self.waiting)
        #expect(reply.json["state"]?.string == "failed")
        #expect(reply.json["error"]?["retryable"]?.boolean == true)
        let id = reply.json["id"]?.string ?? ""
        #expect(try await self.gateway.get("/v1/transfers/\(id)/content").status == 409)
    }

    @Test(arguments: [
        (#"{}"#, "422 missing-member /url"), (#"{"url":"ws://127.0.0.1/"}"#, "422 invalid-value /url"),
        (#"{"url":"http://8.8.8.8/"}"#, "403 target-not-allowed /url"),
        (#"{"url":"http://127.0.0.1/","bogus":1}"#, "422 unknown-member /bogus"),
        (#"{"url":"http://127.0.0.1/","priority":2}"#, "422 invalid-value /priority"),
        (#"{"url":"http://127.0.0.1/","destination":"/tmp/x"}"#, "403 path-not-allowed /destination"),
        (#"{"url":"http://127.0.0.1/","credential":"nobody"}"#, "422 "),
        (#"{"url":"http://127.0.0.1/","idleTimeoutMs":0}"#, "422 invalid-value /idleTimeoutMs"),
        (#"{"url":"file:///etc/passwd"}"#, "422 invalid-value /url"),
        (#"{"url":"ftp://127.0.0.1/"}"#, "422 invalid-value /url"),
        (#"{"url":"http://"}"#, "422 invalid-value /url"),
        (#"{"url":"nonsense"}"#, "422 invalid-value /url"),
        (#"{"url":"http://ada:secret@127.0.0.1/"}"#, "422 invalid-value /url"),
        (#"{"url":"http://127.0.0.1:99999/"}"#, "422 invalid-value /url"),
        (#"{"url":"http://127.0.0.1/a b"}"#, "422 invalid-value /url"),
        (#"{"url":"data:,x"}"#, "422 invalid-value /url"),
        (#"{"url":"http://127.0.0.1/","method":"G T"}"#, "422 invalid-value /method"),
        (#"{"url":"http://127.0.0.1/","method":"CONNECT"}"#, "422 invalid-value /method"),
        (#"{"url":"http://127.0.0.1/","method":"GET","text":"x"}"#, "422 invalid-value /method"),
        (#"{"url":"http://127.0.0.1/","text":"x","data":"eA=="}"#, "422 invalid-value /data"),
        (#"{"url":"http://127.0.0.1/","data":"?"}"#, "422 invalid-value /data"),
        (#"{"url":"http://127.0.0.1/","headers":{"Host":"x"}}"#, "422 invalid-value /headers/Host"),
        (#"{"url":"http://127.0.0.1/","headers":{"X":"a\r\nY: b"}}"#, "422 invalid-value /headers/X"),
        (#"{"url":"http://127.0.0.1/","headers":{"a b":"x"}}"#, "422 invalid-value /headers/a b"),
        (#"{"url":"http://127.0.0.1/","timeoutMs":0}"#, "422 invalid-value /timeoutMs"),
        (#"{"url":"http://127.0.0.1/","maximumBodyBytes":1099511627776}"#, "422 invalid-value /maximumBodyBytes"),
        (#"{"url":"http://127.0.0.1/","overwrite":true}"#, "422 invalid-value /overwrite"),
        (#"{"url":"http://127.0.0.1/","file":"/tmp/x"}"#, "403 path-not-allowed /file"),
    ])
    func invalidTransferIsRefused(_ body: String, _ problem: String) async throws {
        let reply = try await self.gateway.post("/v1/transfers", body)
        #expect(reply.problem.hasPrefix(problem), "\(reply.text)")
        #expect(try await self.gateway.get("/v1/transfers").json["items"]?.items.isEmpty == true)
    }

    @Test func transferIsStartedLaterChangedAndForgotten() async throws {
        let made = try await self.gateway.post(
            "/v1/transfers", #"{"url":"\#(self.gateway.control)/version","start":false}"#)
        let path = made.fields["location"] ?? ""
        #expect(made.json["state"]?.string == "suspended")
        let changed = try await self.gateway.request("PATCH", path, #"{"description":"b","labels":{"y":"2"}}"#)
        #expect(changed.json["description"]?.string == "b")
        #expect(try await self.gateway.get("/v1/transfers?label=y:2&state=suspended").json["items"]?.items.count == 1)
        #expect(try await self.gateway.get("/v1/transfers?state=finished").json["items"]?.items.count == 0)
        #expect(try await self.gateway.post(path + ":resume").json["state"]?.string == "running")
        try await self.gateway.wait { try await self.gateway.get(path).json["state"]?.string == "finished" }
        #expect(try await self.gateway.request("DELETE", path).status == 204)
        #expect(try await self.gateway.get(path).problem == "404 unknown-transfer")
    }

    @Test func cancelledTransferWithoutAFileCannotBeResumed() async throws {
        let made = try await self.gateway.post(
            "/v1/transfers", #"{"url":"\#(self.gateway.control)/version","start":false}"#)
        let path = made.fields["location"] ?? ""
        let cancelled = try await self.gateway.post(path + ":cancel")
        #expect(cancelled.json["state"]?.string == "cancelled" && cancelled.json["canResume"]?.boolean == false)
        #expect(try await self.gateway.post(path + ":restart").problem == "409 no-resume-data")
        let restarted = try await self.gateway.post(path + ":restart", #"{"fromBeginning":true}"#)
        #expect(restarted.status == 200 && restarted.json["state"]?.string == "running")
    }

    @Test func streamedBodyIsUploaded() async throws {
        let url = "\(self.gateway.control)/v1/routes/uploaded"
        let made = try await self.gateway.post(
            "/v1/transfers",
            #"{"url":"\#(url)","method":"PUT","streamed":true,"headers":{"Content-Type":"application/json"}}"#)
        #expect(made.json["state"]?.string == "waiting", "\(made.text)")
        let path = made.fields["location"] ?? ""
        let body = try await self.gateway.request("PUT", path + "/body", #"{"path":"/up","target":"echo"}"#)
        #expect((200...299).contains(body.status), "\(body.text)")
        try await self.gateway.wait { try await self.gateway.get(path).json["state"]?.string == "finished" }
        #expect(try await self.gateway.get("/v1/routes/uploaded").json["path"]?.string == "/up")
    }

    @Test(arguments: [
        ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", ":suspend"), ("POST", ":resume"), ("POST", ":cancel"),
        ("POST", ":restart"), ("PUT", "/body"), ("GET", "/content"),
    ])
    func unknownTransferIsNotFound(_ method: String, _ rest: String) async throws {
        let reply = try await self.gateway.request(method, "/v1/transfers/7\(rest)", method == "GET" ? nil : "{}")
        #expect(reply.problem == "404 unknown-transfer")
    }
}
