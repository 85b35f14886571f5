import ControlAPI
import ControlPlane
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Data of connections on other nodes", .timeLimit(.minutes(5)))
struct ForwardedReceiveTests {
    private func receiveWhenAllowed(_ gateway: LoopbackGateway, _ path: String) async throws -> HTTPReply {
        while true {
            let reply = try await gateway.post(path, #"{"timeoutMs":60000}"#)
            if reply.status != 503 { return reply }
        }
    }

    @Test func messagesAndBytesAreReceivedOnAnyNode() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            let path = "/v1/connections/\(id)"
            _ = try await a.post("\(path):send", #"{"text":"é/\n"}"#)
            #expect(try await a.post("\(path):receive").json["text"]?.string == "é/\n")
            _ = try await a.post("\(path):send", #"{"data":"AAE="}"#)
            let binary = try await a.post("\(path):receive?timeoutMs=100000")
            #expect(binary.json["data"]?.string == "AAE=" && binary.json["sizeBytes"]?.integer == 2)
            #expect(try await a.post("\(path):receive", #"{"timeoutMs":1}"#).status == 204)
            #expect(try await a.post("\(path):receive", fields: ["Prefer": "wait=0"]).status == 204)

            let local = try #require(id.split(separator: "@").first)
            _ = try await a.post("\(path):send", #"{"text":"named"}"#)
            let named = try await a.post("/v1/connections/\(local):receive?node=b")
            #expect(named.json["text"]?.string == "named", "\(named.text)")

            let stream = try await b.open(b.raw)
            _ = try await a.post("/v1/connections/\(stream):send", #"{"text":"0123456789"}"#)
            let body = #"{"minimumBytes":4,"maximumBytes":4}"#
            let first = try await a.post("/v1/connections/\(stream):receive", body)
            #expect(first.json["data"]?.string == "MDEyMw==", "\(first.text)")
            let rest = try await a.post("/v1/connections/\(stream):receive?minimumBytes=6")
            #expect(rest.json["data"]?.string == "NDU2Nzg5")
        }
    }

    @Test func waitTakesTurns() async throws {
        try await LoopbackCluster.run(["a", "b"], limits: { $0.receiveTurn = .milliseconds(20) }) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            async let received = a.post("/v1/connections/\(id):receive", #"{"timeoutMs":60000}"#)
            try await a.wait { cluster.network.calls.count { $0 == "b" } >= 4 }
            _ = try await b.post("/v1/connections/\(id):send", #"{"text":"late"}"#)
            #expect(try await received.json["text"]?.string == "late")
            #expect(try await a.post("/v1/connections/\(id):receive", #"{"timeoutMs":70}"#).status == 204)
        }
    }

    @Test func requestWithItsKeyTakesOneMessage() async throws {
        try await LoopbackCluster.run(["a", "b", "c"]) { cluster in
            let (a, b, c) = (try cluster.node("a"), try cluster.node("b"), try cluster.node("c"))
            let id = try await b.open(b.echo)
            for text in ["1", "2"] { _ = try await b.post("/v1/connections/\(id):send", #"{"text":"\#(text)"}"#) }
            for node in [a, a, c] {
                let reply = try await node.post("/v1/connections/\(id):receive", fields: ["Idempotency-Key": "once"])
                #expect(reply.json["text"]?.string == "1", "\(reply.text)")
            }
            #expect(try await c.post("/v1/connections/\(id):receive").json["text"]?.string == "2")
        }
    }

    @Test func clientThatDisconnectsTakesNoMessage() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            let exchange = HTTPExchange(a.control)
            let host = a.control.dropFirst("http://".count)
            try await exchange.send(
                Array("POST /v1/connections/\(id):receive HTTP/1.1\r\nHost: \(host)\r\nContent-Length: 0\r\n\r\n".utf8))
            try await a.wait { cluster.network.calls.contains("b") }
            exchange.close()
            let isWithdrawn = { (line: String) in line.contains("operation=receive") && line.contains("client-gone") }
            for node in [a, b] {
                try await node.wait { node.log.contains(where: isWithdrawn) }
            }
            _ = try await b.post("/v1/connections/\(id):send", #"{"text":"kept"}"#)
            #expect(try await a.post("/v1/connections/\(id):receive").json["text"]?.string == "kept")
        }
    }

    // MARK: Limits

    @Test func messageThatNodesCannotExchangeStaysWithItsConnection() async throws {
        // 32 KiB are for the head.
        try await LoopbackCluster.run(["a", "b"], limits: { $0.messageSize = 40 << 10 }) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            let path = "/v1/connections/\(id)"
            let long = String(repeating: "x", count: 9 << 10)
            let escaped = String(repeating: "\u{1}", count: 2 << 10)
            for (text, type) in [(long, "text/plain"), (escaped, "text/plain"), (long, "application/octet-stream")] {
                _ = try await b.post("\(path):send", text, fields: ["Content-Type": type])
                for _ in 0..<2 {
                    let reply = try await a.post("\(path):receive")
                    #expect(reply.problem == "502 node-answer-too-large" && reply.detail.contains("8192 bytes"))
                }
                let reply = try await b.post("\(path):receive")
                #expect(reply.status == 200 && reply.json["sizeBytes"]?.integer == text.utf8.count)
            }
            let short = String(repeating: "\"", count: 3 << 10)
            _ = try await b.post("\(path):send", short, fields: ["Content-Type": "text/plain"])
            #expect(try await a.post("\(path):receive").json["text"]?.string == short)
        }
    }

    @Test func bytesOfAStreamComeInPiecesThatNodesExchange() async throws {
        try await LoopbackCluster.run(["a", "b"], limits: { $0.messageSize = 40 << 10 }) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.raw)
            let path = "/v1/connections/\(id)"
            _ = try await b.post(
                "\(path):send", String(repeating: "x", count: 8 << 10), fields: ["Content-Type": "text/plain"])
            let refused = try await a.post("\(path):receive?minimumBytes=8192")
            #expect(refused.problem == "413 answer-too-large" && refused.detail.contains("5952 bytes"))
            let first = try await a.post("\(path):receive?minimumBytes=5952")
            #expect(first.json["sizeBytes"]?.integer == 5952, "\(first.text)")
            let rest = try await b.post("\(path):receive?minimumBytes=2240")
            #expect(rest.json["sizeBytes"]?.integer == 2240)
        }
    }

    @Test func waitsLeaveOtherRequestsTheirShare() async throws {
        try await LoopbackCluster.run(
            ["a", "b"], limits: { ($0.servedReceives, $0.servedRequests) = (1, 1) }
        ) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            async let first = self.receiveWhenAllowed(a, "/v1/connections/\(id):receive")
            try await a.wait { cluster.network.calls.contains("b") }
            var refused = try await a.post("/v1/connections/\(id):receive", #"{"timeoutMs":1}"#)
            while refused.status == 204 {
                refused = try await a.post("/v1/connections/\(id):receive", #"{"timeoutMs":1}"#)
            }
            #expect(refused.problem == "503 node-busy" && refused.json["retryable"]?.boolean == true)
            #expect(try await a.get("/v1/connections/\(id)").status == 200)
            _ = try await a.post("/v1/connections/\(id):send", #"{"text":"x"}"#)
            #expect(try await first.json["text"]?.string == "x")
        }
    }

    @Test(arguments: [
        (#"{"timeoutMs":-1}"#, "", "422 invalid-value"), ("", "?timeoutMs=x", "400 invalid-parameter timeoutMs"),
        (#"{"maximumBytes":1}"#, "", "422 invalid-value"),
    ])
    func invalidRequestIsRefused(_ body: String, _ query: String, _ problem: String) async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            let reply = try await a.post("/v1/connections/\(id):receive\(query)", body)
            #expect(reply.problem.hasPrefix(problem), "\(reply.text)")
            #expect(reply.problem == (try await b.post("/v1/connections/\(id):receive\(query)", body)).problem)
        }
    }
}
