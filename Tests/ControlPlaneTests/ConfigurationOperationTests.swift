import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Configuration operations of the REST interface", .gateway, .timeLimit(.minutes(5)))
struct ConfigurationOperationTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    private static let yaml = ["Content-Type": "application/yaml"]

    private static func names(_ reply: HTTPReply) -> [String?] {
        reply.json["items"]?.items.map { $0["name"]?.string } ?? []
    }

    // MARK: Entries

    @Test func entriesOfASectionAreListedInTheirOrder() async throws {
        #expect(Self.names(try await self.gateway.get("/v1/listeners")) == ["web", "raw"])
        #expect(Self.names(try await self.gateway.get("/v1/routes")) == ["echo", "chat", "raw"])
        #expect(Self.names(try await self.gateway.get("/v1/upstreams")) == [])
    }

    @Test func entryIsCreatedShownAndDeleted() async throws {
        let made = try await self.gateway.post("/v1/routes", #"{"name":"second","path":"/second","target":"echo"}"#)
        #expect(made.status == 201)
        #expect(made.fields["location"] == "/v1/routes/second")
        let shown = try await self.gateway.get("/v1/routes/second")
        #expect(shown.json == made.json)
        #expect(shown.json["path"]?.string == "/second")
        _ = try await self.gateway.open("ws://127.0.0.1:\(self.gateway.port("web"))/second")
        let deleted = try await self.gateway.request("DELETE", "/v1/routes/second")
        #expect(deleted.status == 204)
        #expect(deleted.body.isEmpty)
        #expect(try await self.gateway.get("/v1/routes/second").problem == "404 unknown-route")
    }

    @Test func patchChangesTheGivenKeysAndNullRemovesOne() async throws {
        let first = try await self.gateway.request(
            "PATCH", "/v1/routes/echo", #"{"max-message-size":1000,"compress":true}"#)
        #expect(first.json["max-message-size"]?.integer == 1000)
        let reply = try await self.gateway.request(
            "PATCH", "/v1/routes/echo", #"{"max-message-size":2000,"compress":null}"#)
        #expect(reply.status == 200)
        #expect(reply.json["max-message-size"]?.integer == 2000)
        #expect(reply.json["compress"] == nil)
        #expect(
            reply.json
                == JSONValue(text: #"{"name":"echo","path":"/echo","target":"echo","max-message-size":2000}"#))
    }

    @Test func putReplacesTheWholeEntryOrCreatesIt() async throws {
        _ = try await self.gateway.request("PATCH", "/v1/routes/echo", #"{"max-message-size":1000}"#)
        let replaced = try await self.gateway.request("PUT", "/v1/routes/echo", #"{"path":"/other","target":"echo"}"#)
        #expect(replaced.status == 200)
        #expect(replaced.json == JSONValue(text: #"{"name":"echo","path":"/other","target":"echo"}"#))
        _ = try await self.gateway.open("ws://127.0.0.1:\(self.gateway.port("web"))/other")
        let made = try await self.gateway.request("PUT", "/v1/routes/second", #"{"path":"/second","target":"chat"}"#)
        #expect(made.status == 201)
        #expect(made.json["name"]?.string == "second")
    }

    @Test func shownEntryReplacesItselfWithoutChange() async throws {
        for path in ["/v1/listeners/web", "/v1/routes/chat"] {
            let shown = try await self.gateway.get(path)
            let again = try await self.gateway.request("PUT", path, shown.text)
            #expect(again.json == shown.json)
            #expect(again.fields["etag"] == shown.fields["etag"])
        }
    }

    @Test func keyThatOccursTwiceIsRefused() async throws {
        let text = #"{"name":"second","path":"/a","path":"/b","target":"echo"}"#
        #expect(try await self.gateway.post("/v1/routes", text).problem == "422 duplicate-member /path")
        let patch = #"{"max-message-size":1000,"max-message-size":2000}"#
        let refused = try await self.gateway.request("PATCH", "/v1/routes/echo", patch)
        #expect(refused.problem == "422 duplicate-member /max-message-size")
        let whole = try await self.gateway.request(
            "PUT", "/v1/configuration", #"{"routes":[{"name":"a","name":"b","target":"echo"}]}"#)
        #expect(whole.problem == "422 duplicate-member /routes/0/name")
    }

    @Test func yamlBodyIsReadLikeTheFile() async throws {
        let body =
            "name: second\npath: /second\ntarget: echo\nidle-timeout: 1m\n"
            + "origins: 'https://a.example'\nmax-message-size: 64\ncompress: true\n"
        let reply = try await self.gateway.post("/v1/routes", body, fields: Self.yaml)
        #expect(reply.status == 201)
        #expect(reply.json["idle-timeout"]?.string == "1m")
        #expect(reply.json["origins"] == .array([.string("https://a.example")]))
        #expect(reply.json["max-message-size"]?.integer == 64 && reply.json["compress"]?.boolean == true)
        let last = try await self.gateway.get("/v1/configuration").json["routes"]?.items.last
        #expect(last?["origins"] == .array([.string("https://a.example")]))
    }

    @Test func upstreamShowsItsEndpointsAndCannotBeDeletedWhileARouteUsesIt() async throws {
        let endpoint = "ws://127.0.0.1:\(self.gateway.port("web"))/echo"
        _ = try await self.gateway.post("/v1/upstreams", #"{"name":"other","endpoints":["\#(endpoint)"]}"#)
        _ = try await self.gateway.post("/v1/routes", #"{"name":"far","path":"/far","target":"other"}"#)
        _ = try await self.gateway.open("ws://127.0.0.1:\(self.gateway.port("web"))/far")
        let status = try await self.gateway.get("/v1/upstreams/other").json["status"]
        let endpoints = status?["endpoints"]?.items ?? []
        #expect(endpoints.map { $0["connections"]?.integer } == [1])
        #expect(endpoints.map { $0["ejected"]?.boolean } == [false])
        let refused = try await self.gateway.request("DELETE", "/v1/upstreams/other")
        #expect(refused.problem == "409 conflicts-with-configuration -")
        #expect(refused.json["errors"]?.items[0]["detail"]?.string?.contains("routes[3].target") == true)
        #expect(try await self.gateway.request("DELETE", "/v1/routes/far").status == 204)
        #expect(try await self.gateway.request("DELETE", "/v1/upstreams/other").status == 204)
    }

    // MARK: Refusals

    @Test(arguments: [
        (#"{"name":"x","listen":"ws://127.0.0.1:99999"}"#, "/listen", "a port from 0 to 65535"),
        (#"{"name":"x","listen":"ws://127.0.0.1:0","backlogg":1}"#, "/backlogg", "did you mean backlog?"),
        (#"{"name":"x","listen":"ws://127.0.0.1:0","backlog":0}"#, "/backlog", "expected"),
        (#"{"name":"a b","listen":"ws://127.0.0.1:0"}"#, "/name", "expected"),
        (#"{"listen":"ws://127.0.0.1:0"}"#, "/name", "a value for name"),
        (#"{"name":"x","listen":"tcp://127.0.0.1:0","route":"nowhere"}"#, "/route", "the name of a route"),
        (#"{"name":"x","listen":"ws://127.0.0.1:0","keep-alive":{"probes":500}}"#, "/keep-alive/probes", "expected"),
    ])
    func invalidListenerIsRefusedWithItsPlace(_ body: String, _ pointer: String, _ words: String) async throws {
        let reply = try await self.gateway.post("/v1/listeners", body)
        #expect(reply.status == 422 && reply.json["code"]?.string == "invalid-configuration")
        let error = reply.json["errors"]?.items.first { $0["pointer"]?.string == pointer }
        #expect(error?["detail"]?.string?.contains(words) == true, "\(reply.text)")
        #expect(Self.names(try await self.gateway.get("/v1/listeners")) == ["web", "raw"])
    }

    @Test(arguments: [
        ("backlog", #""5""#, "/backlog"), ("backlog", "true", "/backlog"),
        ("plain-and-tls", #""true""#, "/plain-and-tls"), ("name", "5", "/name"),
        ("handshake-timeout", "10", "/handshake-timeout"),
        ("proxy-protocol-trusted", #""10.0.0.0/8""#, "/proxy-protocol-trusted"),
        ("proxy-protocol-trusted", "[10]", "/proxy-protocol-trusted/0"), ("keep-alive", "[]", "/keep-alive"),
        ("keep-alive", #"{"probes":"3"}"#, "/keep-alive/probes"), ("max-header-size", "{}", "/max-header-size"),
    ])
    func jsonMemberOfAnotherTypeIsRefused(_ member: String, _ value: String, _ pointer: String) async throws {
        let name = member == "name" ? "" : #""name":"extra","#
        let reply = try await self.gateway.post(
            "/v1/listeners", #"{\#(name)"listen":"ws://127.0.0.1:0","\#(member)":\#(value)}"#)
        #expect(reply.json["code"]?.string == "invalid-configuration")
        #expect(reply.json["errors"]?.items.first?["pointer"]?.string == pointer, "\(reply.text)")
        #expect(reply.detail.contains("expected"))
        #expect(try await self.gateway.get("/v1/listeners/extra").problem == "404 unknown-listener")
    }

    @Test func sizeIsANumberOrAText() async throws {
        for size in ["8192", #""8KiB""#] {
            let reply = try await self.gateway.request(
                "PUT", "/v1/listeners/extra",
                #"{"listen":"ws://127.0.0.1:0","max-header-size":\#(size),"keep-alive":{"probes":5}}"#)
            #expect(reply.json["max-header-size"] == JSONValue(text: size))
            #expect(reply.json["keep-alive"] == JSONValue(text: #"{"probes":5}"#))
        }
    }

    @Test func malformedBodyOrUnknownNameChangesNothing() async throws {
        let before = try await self.gateway.get("/v1/configuration")
        let listen = #""listen":"ws://127.0.0.1:0""#
        let deep =
            #"{"name":"x","listen":"# + String(repeating: "[", count: 200)
            + String(repeating: "]", count: 200) + "}"
        let cases: [(String, String, String?, [String: String], String)] = [
            ("POST", "/v1/listeners", "{", [:], "400 malformed-json"),
            ("POST", "/v1/listeners", "a: [", Self.yaml, "400 malformed-yaml"),
            ("POST", "/v1/listeners", "x", ["Content-Type": "text/csv"], "415 unsupported-media-type"),
            ("POST", "/v1/listeners", "[]", [:], "422 wrong-type"),
            ("POST", "/v1/listeners", #"{"name":"web",\#(listen)}"#, [:], "409 name-taken /name"),
            ("PATCH", "/v1/listeners/nobody", "{}", [:], "404 unknown-listener"),
            ("DELETE", "/v1/routes/nobody", nil, [:], "404 unknown-route"),
            ("GET", "/v1/upstreams/nobody", nil, [:], "404 unknown-upstream"),
            ("POST", "/v1/listeners", deep, [:], "422 too-large"),
        ]
        for (method, path, body, fields, expected) in cases {
            let reply = try await self.gateway.request(method, path, body, fields: fields)
            #expect(reply.problem.hasPrefix(expected), "\(method) \(path): \(reply.text)")
        }
        let renamed = try await self.gateway.request("PATCH", "/v1/listeners/web", #"{"name":"other"}"#)
        #expect(renamed.json["code"]?.string == "invalid-configuration")
        #expect(try await self.gateway.get("/v1/configuration").body == before.body)
    }

    @Test func portOfARunningListenerIsRefusedForAnother() async throws {
        let port = self.gateway.port("web")
        for listen in ["ws://127.0.0.1:\(port)", "ws://*:\(port)", "ws://0.0.0.0:\(port)"] {
            let reply = try await self.gateway.post("/v1/listeners", #"{"name":"other","listen":"\#(listen)"}"#)
            #expect(reply.problem == "409 cannot-run")
            #expect(reply.detail.contains("'web'"))
        }
        #expect(try await self.gateway.get("/v1/listeners/other").problem == "404 unknown-listener")
        _ = try await self.gateway.open(self.gateway.echo)
    }

    @Test func portOfTheControlPlaneIsRefusedForAListener() async throws {
        let port = try #require(self.gateway.control.split(separator: ":").last)
        for listen in ["ws://127.0.0.1:\(port)", "ws://*:\(port)"] {
            let reply = try await self.gateway.post("/v1/listeners", #"{"name":"other","listen":"\#(listen)"}"#)
            #expect(reply.problem == "409 cannot-run")
            #expect(reply.detail.contains("the control plane listens here"))
        }
    }

    // MARK: Entity tags

    @Test func changeWithAnOutdatedTagIsRefused() async throws {
        let tag = try await self.gateway.get("/v1/routes/echo").fields["etag"] ?? ""
        let unchanged = try await self.gateway.get("/v1/listeners/web").fields["etag"]
        let changed = try await self.gateway.request(
            "PATCH", "/v1/routes/echo", #"{"idle-timeout":"1m"}"#, fields: ["If-Match": tag])
        #expect(changed.status == 200 && changed.fields["etag"] != tag)
        for (method, body) in [
            ("PATCH", #"{"idle-timeout":"2m"}"#), ("PUT", #"{"path":"/","target":"echo"}"#), ("DELETE", nil),
        ] {
            let reply = try await self.gateway.request(method, "/v1/routes/echo", body, fields: ["If-Match": tag])
            #expect(reply.problem == "412 changed-meanwhile")
        }
        #expect(try await self.gateway.get("/v1/routes/echo").json["idle-timeout"]?.string == "1m")
        #expect(try await self.gateway.get("/v1/listeners/web").fields["etag"] == unchanged)
        for tags in [#""other", \#(changed.fields["etag"] ?? "")"#, "*"] {
            let reply = try await self.gateway.request(
                "PATCH", "/v1/routes/echo", #"{"idle-timeout":"3m"}"#, fields: ["If-Match": tags])
            #expect(reply.status == 200, "\(tags)")
        }
        let absent = try await self.gateway.request(
            "PUT", "/v1/routes/nobody", #"{"path":"/n","target":"echo"}"#, fields: ["If-Match": "*"])
        #expect(absent.problem == "412 changed-meanwhile")
    }

    @Test(arguments: ["/v1/routes", "/v1/routes/echo", "/v1/configuration"])
    func unchangedStateIsNotSentAgain(_ path: String) async throws {
        let tag = try await self.gateway.get(path).fields["etag"] ?? ""
        let known = try await self.gateway.get(path, fields: ["If-None-Match": #""other", \#(tag)"#])
        #expect(known.status == 304)
        #expect(known.body.isEmpty && known.fields["etag"] == tag)
        #expect(try await self.gateway.get(path, fields: ["If-None-Match": #""other""#]).status == 200)
    }

    @Test func ifNoneMatchAnyCreatesOnlyANewEntry() async throws {
        let fields = ["If-None-Match": "*"]
        let body = #"{"path":"/second","target":"echo"}"#
        #expect(try await self.gateway.request("PUT", "/v1/routes/second", body, fields: fields).status == 201)
        let again = try await self.gateway.request(
            "PUT", "/v1/routes/second", #"{"path":"/other","target":"echo"}"#, fields: fields)
        #expect(again.problem == "412 changed-meanwhile")
        #expect(try await self.gateway.get("/v1/routes/second").json["path"]?.string == "/second")
    }

    // MARK: Dry runs

    @Test func dryRunShowsTheDifferenceAndChangesNothing() async throws {
        let before = try await self.gateway.get("/v1/configuration")
        let reply = try await self.gateway.request(
            "PATCH", "/v1/routes/echo?dryRun=true", #"{"idle-timeout":"1m","path":"/other"}"#)
        #expect(
            reply.json
                == JSONValue(
                    text: """
                        {"applied":false,"changes":[{"resource":"/v1/routes/echo","change":"changed","members":[
                        {"pointer":"/path","from":"/echo","to":"/other"},{"pointer":"/idle-timeout","to":"1m"}]}]}
                        """))
        let listen = #"{"name":"x","listen":"ws://127.0.0.1:0"}"#
        let made = try await self.gateway.post("/v1/listeners?dryRun=true", listen)
        #expect(made.json["changes"]?.items.map { $0["resource"]?.string } == ["/v1/listeners/x"])
        #expect(made.json["changes"]?.items.map { $0["change"]?.string } == ["created"])
        let put = try await self.gateway.request("PUT", "/v1/routes/s?dryRun=true", #"{"path":"/s","target":"echo"}"#)
        #expect(put.status == 200)
        let deleted = try await self.gateway.request("DELETE", "/v1/routes/chat?dryRun=true")
        #expect(deleted.json["changes"]?.items.map { $0["change"]?.string } == ["deleted"])
        let invalid = try await self.gateway.post("/v1/listeners?dryRun=true", #"{"name":"x","listen":"ws://nobody"}"#)
        #expect(invalid.status == 422 && invalid.json["code"]?.string == "invalid-configuration")
        let after = try await self.gateway.get("/v1/configuration")
        #expect(after.body == before.body && after.fields["etag"] == before.fields["etag"])
    }

    @Test(arguments: ["dryRun=maybe", "dryRun=true&dryRun=false", "dryRun"])
    func invalidDryRunIsRefused(_ query: String) async throws {
        let reply = try await self.gateway.post("/v1/routes?\(query)", #"{"name":"a","path":"/a","target":"echo"}"#)
        #expect(reply.problem == "400 invalid-parameter dryRun")
    }

    // MARK: The whole configuration

    @Test func exportedConfigurationReplacesItselfWithoutChange() async throws {
        let json = try await self.gateway.get("/v1/configuration")
        let yaml = try await self.gateway.get("/v1/configuration?format=yaml")
        #expect(yaml.fields["content-type"] == "application/yaml")
        let unchanged = JSONValue(text: #"{"applied":true,"changes":[]}"#)
        let first = try await self.gateway.request("PUT", "/v1/configuration", json.text)
        #expect(first.json == unchanged)
        let second = try await self.gateway.request("PUT", "/v1/configuration", yaml.text, fields: Self.yaml)
        #expect(second.json == unchanged)
        #expect(try await self.gateway.get("/v1/configuration").fields["etag"] == json.fields["etag"])
        #expect(try await self.gateway.get("/v1/configuration?format=xml").problem == "400 invalid-parameter format")
    }

    @Test func entriesThatNeedEachOtherAreReplacedTogether() async throws {
        let more = """
              - {name: new, listen: 'tcp://127.0.0.1:0', route: new}
            routes:
              - {name: new, target: echo}
            """
        let whole = LoopbackGateway.echo.replacing("routes:", with: more)
        let reply = try await self.gateway.request("PUT", "/v1/configuration", whole, fields: Self.yaml)
        #expect(reply.status == 200, "\(reply.text)")
        let resources = reply.json["changes"]?.items.compactMap { $0["resource"]?.string }.sorted()
        #expect(resources == ["/v1/listeners/new", "/v1/routes/new"])
    }

    @Test func memberThatNeedsARestartIsMarked() async throws {
        let whole = LoopbackGateway.echo + "loops: 3\n"
        let reply = try await self.gateway.request("PUT", "/v1/configuration?dryRun=true", whole, fields: Self.yaml)
        #expect(
            reply.json["changes"]
                == JSONValue(
                    text: """
                        [{"resource":"/v1/configuration","change":"changed","members":[
                        {"pointer":"/loops","to":3,"needsRestart":true}]}]
                        """), "\(reply.text)")
    }

    @Test func reloadReadsTheFileAgain() async throws {
        _ = try await self.gateway.post("/v1/routes", #"{"name":"passing","path":"/passing","target":"echo"}"#)
        self.gateway.setFile(LoopbackGateway.echo.replacing("name: chat", with: "name: talk"))
        let planned = try await self.gateway.post("/v1/configuration:reload?dryRun=true")
        let changes = planned.json["changes"]?.items ?? []
        #expect(
            Set(changes.map { "\($0["change"]?.string ?? "") \($0["resource"]?.string ?? "")" })
                == ["deleted /v1/routes/passing", "deleted /v1/routes/chat", "created /v1/routes/talk"])
        let done = try await self.gateway.post("/v1/configuration:reload")
        #expect(done.json["applied"]?.boolean == true && done.json["changes"] == planned.json["changes"])
        self.gateway.setFile("listeners: 7")
        let refused = try await self.gateway.post("/v1/configuration:reload")
        #expect(refused.json["code"]?.string == "invalid-configuration")
        #expect(try await self.gateway.get("/v1/routes/talk").status == 200)
    }

    // MARK: Credentials

    @Test func valuesOfCredentialsAreHiddenAndKept() async throws {
        let configuration =
            LoopbackGateway.echo
            .replacing(
                "raw, target: echo}",
                with: "raw, target: echo}\n"
                    + "  - {name: far, path: /far, target: 'ws://127.0.0.1:9/', "
                    + "headers: {Authorization: Bearer s3cr3t, X-API-Key: s3cr3t, X-Plain: plain}}")
        try await LoopbackGateway.run(configuration) { gateway in
            for path in ["/v1/routes", "/v1/routes/far", "/v1/configuration", "/v1/configuration?format=yaml"] {
                let text = try await gateway.get(path).text
                #expect(!text.contains("s3cr3t"), "\(path)")
            }
            #expect(try await gateway.get("/v1/configuration?secrets=true").text.contains("Bearer s3cr3t"))
            let shown = try await gateway.get("/v1/routes/far")
            let headers = #"{"Authorization":"(hidden)","X-API-Key":"(hidden)","X-Plain":"plain"}"#
            #expect(shown.json["headers"] == JSONValue(text: headers))
            let changed = shown.text.replacing(#""plain""#, with: #""other""#)
            #expect(try await gateway.request("PUT", "/v1/routes/far", changed).status == 200)
            let whole = try await gateway.get("/v1/configuration?secrets=true").text
            #expect(whole.contains("Bearer s3cr3t") && whole.contains(#""other""#))
            let stray = #"{"name":"x","path":"/x","target":"ws://127.0.0.1:9/","headers":{"Authorization":"(hidden)"}}"#
            let reply = try await gateway.post("/v1/routes", stray)
            #expect(reply.problem == "422 invalid-configuration /headers/Authorization")
        }
    }
}
