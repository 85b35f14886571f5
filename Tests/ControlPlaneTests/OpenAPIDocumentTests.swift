import ControlAPI
import ControlPlane
import GatewayConfiguration
import GatewayCore
import SessionTasks
import StreamTransport
import Testing

@Suite("The OpenAPI document")
struct OpenAPIDocumentTests {
    private func document() throws -> OpenAPIDocument {
        let text = "listeners: [{name: a, listen: 'ws://127.0.0.1:0'}]\nroutes: [{name: b, path: /, target: echo}]"
        let located = try ConfigurationReader.read([UInt8](text.utf8), file: "sluice.yaml")
        let group = try LoopGroup(count: 1)
        defer { group.stop() }
        let log = TunnelLog(LogSettings())
        let gateway = try Gateway(
            loops: group.loops, log: log, configuration: located.configuration, passedSockets: [])
        let running = RunningConfiguration(located, gateway: gateway)
        return try ControlServer(
            ControlSettings(), gateway: gateway, configuration: running, log: log, version: "0"
        ).openAPIDocument
    }

    @Test func documentIsOpenAPI31WithUniqueOperations() throws {
        let json = try self.document().json
        #expect(json["openapi"] == "3.1.0")
        var names: Set<String> = []
        for (place, operation) in self.operations(json) {
            let name = try #require(operation["operationId"]?.string, "\(place)")
            #expect(names.insert(name).inserted, "\(name)")
            #expect(operation["responses"] != nil)
        }
        #expect(names.isSuperset(of: ["listConnections", "openConnection", "send", "getDocument"]))
    }

    @Test func schemasAreThoseOfTheModels() throws {
        let schemas = try self.document().json["components"]?["schemas"]
        #expect(SendRequest.members.map(\.name) == ["text", "data", "timeoutMs"])
        let send = schemas?["SendRequest"]?["properties"]
        #expect(self.members(send).map(\.name) == SendRequest.members.map(\.name))
        #expect(send?["text"]?["type"] == ["string", "null"] && send?["timeoutMs"]?["type"] == ["number", "null"])
        #expect(send?["timeoutMs"]?["maximum"] == 600_000 && send?["data"]?["contentEncoding"] == "base64")
        let open = schemas?["OpenRequest"]?["properties"]
        #expect(open?["labels"]?["additionalProperties"]?["type"] == "string")
        #expect(open?["subprotocols"]?["items"]?["type"] == "string")
        #expect(schemas?["TunnelRequest"]?["properties"]?["upstream"]?["$ref"] == "#/components/schemas/OpenRequest")
        #expect(schemas?["Connection"]?["properties"]?["ping"]?["$ref"] == "#/components/schemas/RoundTripTimes")
    }

    /// The words of a member are those of the type that the gateway uses for it.
    @Test func wordsAreThoseOfTheGateway() {
        func words(_ model: any ControlModel.Type, _ name: String) -> [String]? {
            model.members.first { $0.name == name }?.rules.words
        }
        #expect(words(Connection.self, "kind") == ConnectionKind.allCases.map(\.rawValue))
        #expect(words(Connection.self, "state") == TaskStage.allCases.map(\.rawValue))
        #expect(words(TunnelRequest.self, "framing") == Framing.allCases.map(\.rawValue))
        #expect(words(TunnelRequest.self, "halfClose") == HalfClose.allCases.map(\.rawValue))
        #expect(words(ServiceHealth.self, "phase") == ServicePhase.allCases.map(\.rawValue))
        #expect(words(Restriction.self, "kind") == [Moderation.Kind.ban, .mute].map(\.rawValue))
        #expect(words(Event.self, "type") == GatewayEvent.Kind.allCases.map(\.rawValue) + ["gap"])
    }

    @Test func examplesHaveTheMembersOfTheirModels() throws {
        let schemas = try self.document().json["components"]?["schemas"]
        for schema in self.members(schemas) {
            guard case .array(let examples)? = schema.value["examples"] else { continue }
            let known = self.members(schema.value["properties"]).map(\.name)
            for example in examples {
                #expect(self.members(example).map(\.name).allSatisfy(known.contains), "\(schema.name)")
            }
        }
    }

    @Test func examplesAreReadAsTheirModels() throws {
        let schemas = try self.document().json["components"]?["schemas"]
        let models: [any ControlModel.Type] = [
            BulkAnswer.self, BulkRequest.self, ConfigurationDifference.self, ConnectionPage.self, ConnectionPatch.self,
            Drain.self, Event.self, ListenerStatus.self, OpenRequest.self, OperationList.self, PingAnswer.self,
            Problem.self, ReceiveRequest.self, Received.self, SendAnswer.self, SendRequest.self, ServiceHealth.self,
            ServiceVersion.self, TapRecord.self, TLSRequest.self, TransferCancel.self, TransferPage.self,
            TransferRequest.self, TransferRestart.self, TunnelRequest.self, UpstreamStatus.self, ClientCount.self,
            RestrictionList.self, RoomBroadcast.self, RoomBroadcastAnswer.self, RoomDisconnect.self, RoomEvent.self,
            RoomHistoryPage.self, RoomKick.self, RoomMemberPage.self, RoomPage.self, RoomPosition.self,
            RoomPublish.self, RoomRestriction.self, RoomRestrictionEnd.self, User.self, UserDisconnect.self,
            UserPage.self,
            UserRestriction.self, UserSend.self, DrainList.self, NodeDrain.self, NodeList.self, RoomNode.self,
        ]
        for model in models {
            guard case .array(let examples)? = schemas?["\(model)"]?["examples"] else {
                Issue.record("\(model) has no example")
                continue
            }
            for example in examples { _ = try JSONReading.read(model, example.bytes) }
        }
    }

    /// All operations of the document, by path and method.
    private func operations(_ json: JSONValue) -> [(name: String, operation: JSONValue)] {
        self.members(json["paths"]).flatMap { path in
            path.value.members.map { ("\($0.name) \(path.name)", $0.value) }
        }
    }

    private func members(_ value: JSONValue?) -> [JSONValue.Member] { value?.members ?? [] }

    @Test func everyParameterHasADescriptionAndAnExample() throws {
        let operations = self.operations(try self.document().json)
        #expect(operations.count > 50)
        for (name, operation) in operations {
            guard case .array(let parameters)? = operation["parameters"] else { continue }
            for parameter in parameters {
                #expect(parameter["description"] != nil && parameter["example"] != nil, "\(name): \(parameter)")
            }
        }
    }

    @Test func everySchemaHasAnExample() throws {
        for schema in self.members(try self.document().json["components"]?["schemas"]) {
            #expect(schema.value["examples"] != nil, "\(schema.name)")
        }
    }

    @Test func everyBodyAndAnswerHasASchema() throws {
        for (name, operation) in self.operations(try self.document().json) {
            let answers = self.members(operation["responses"]).map { ($0.name, $0.value) }
            for (place, value) in answers + [("body", operation["requestBody"] ?? [:])] {
                for content in self.members(value["content"]) {
                    // YAML has the schema of the JSON variant.
                    let isTold = content.value["schema"] != nil || content.name == "application/yaml"
                    #expect(isTold, "\(name) \(place) \(content.name)")
                }
            }
        }
    }

    @Test(arguments: ["GatewayConfiguration", "Listener", "Route", "Upstream"])
    func examplesOfTheConfigurationPassItsReader(_ name: String) throws {
        let schemas = try self.document().json["components"]?["schemas"]
        guard case .array(let examples)? = schemas?[name]?["examples"], let example = examples.first else {
            Issue.record("no example")
            return
        }
        func text(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }
        func part(_ name: String) -> String {
            guard case .array(let examples)? = schemas?[name]?["examples"] else { return "" }
            return examples.map(text).joined(separator: ", ")
        }
        // JSON is YAML.
        let document =
            name == "GatewayConfiguration"
            ? text(example)
            : "{\"listeners\": [\(part("Listener"))], \"routes\": [\(part("Route"))], \"upstreams\": [\(part("Upstream"))]}"
        _ = try ConfigurationReader.read([UInt8](document.utf8), file: "example")
    }

    @Test func listenersRoutesAndUpstreamsHaveTheFormsOfTheirReaders() throws {
        let schemas = try self.document().json["components"]?["schemas"]
        let listener = schemas?["Listener"]
        #expect(listener?["additionalProperties"] == false && listener?["required"] == ["name", "listen"])
        #expect(listener?["properties"]?["backlog"]?["maximum"] == 65_535)
        #expect(listener?["properties"]?["status"]?["readOnly"] == true)
        #expect(listener?["properties"]?["tls"]?["$ref"] == "#/components/schemas/ServerTLSSettings")
        // RFC 7396: null removes a member.
        let patch = schemas?["ListenerPatch"]
        #expect(patch?["required"] == nil && patch?["properties"]?["backlog"]?["type"] == ["integer", "null"])
    }

    @Test func requestsAreStrict() throws {
        let schemas = try self.document().json["components"]?["schemas"]
        #expect(schemas?["OpenRequest"]?["additionalProperties"] == false)
        #expect(schemas?["TLSRequest"]?["additionalProperties"] == false)
        #expect(schemas?["OpenRequest"]?["required"] == ["url"])
        #expect(schemas?["Connection"]?["additionalProperties"] == nil)
    }
}
