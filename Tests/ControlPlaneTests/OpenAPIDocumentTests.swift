import ControlAPI
import ControlPlane
import GatewayConfiguration
import GatewayCore
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
        let gateway = Gateway(
            loops: group.loops, log: log, configuration: located.configuration, passedSockets: [])
        let running = RunningConfiguration(located, gateway: gateway)
        return try ControlServer(
            ControlSettings(), gateway: gateway, configuration: running, log: log, version: "0"
        ).openAPIDocument
    }

    @Test func describesEveryOperationAndNoOther() throws {
        #expect(try self.document().gaps == [])
    }

    @Test func isOfOpenAPI31WithUniqueOperations() throws {
        let json = try self.document().json
        #expect(json["openapi"] == "3.1.0")
        guard case .object(let paths)? = json["paths"] else {
            Issue.record("no paths")
            return
        }
        var names: Set<String> = []
        for path in paths {
            guard case .object(let methods) = path.value else { continue }
            for method in methods {
                guard case .string(let name)? = method.value["operationId"] else {
                    Issue.record("\(path.name) \(method.name)")
                    continue
                }
                #expect(names.insert(name).inserted, "\(name)")
                #expect(method.value["responses"] != nil)
            }
        }
        #expect(names.isSuperset(of: ["listConnections", "openConnection", "send", "getDocument"]))
    }

    @Test func shapesAreThoseOfTheModels() throws {
        let shape = try ModelShape.of(SendRequest.self)
        guard case .model(let name, let members) = shape else {
            Issue.record("\(shape)")
            return
        }
        #expect(name == "SendRequest")
        #expect(members.map(\.name) == ["text", "data", "timeoutMs"])
        #expect(members.map(\.shape) == [.string, .string, .number])
        #expect(members.allSatisfy { !$0.isRequired })
        guard case .model(_, let open) = try ModelShape.of(OpenRequest.self) else { return }
        #expect(open.first { $0.name == "url" }?.isRequired == true)
        #expect(open.first { $0.name == "labels" }?.shape == .map(.string))
        #expect(open.first { $0.name == "subprotocols" }?.shape == .array(.string))
        // What a request may have is what its check of members knows.
        #expect(Set(open.map(\.name)) == Set(OpenRequest.members))
        guard case .model(_, let tunnel) = try ModelShape.of(TunnelRequest.self) else { return }
        #expect(Set(tunnel.map(\.name)) == Set(TunnelRequest.members))
        #expect(tunnel.first { $0.name == "upstream" }?.shape == .model(name: "OpenRequest", members: open))
    }

    @Test func aConnectionIsWrittenWithTheMembersOfItsModel() throws {
        guard case .model(_, let members) = try ModelShape.of(Connection.self) else { return }
        #expect(Set(members.map(\.name)) == Set(ConnectionField.allCases.map(\.rawValue)))
    }

    @Test func notesAreOfMembersThatThereAre() throws {
        let json = try self.document().json
        guard case .object(let schemas)? = json["components"]?["schemas"] else { return }
        let known = schemas.flatMap { schema -> [String] in
            guard case .object(let members)? = schema.value["properties"] else { return [] }
            return members.map { "\(schema.name).\($0.name)" }
        }
        #expect(OpenAPIDocument.describedMembers.subtracting(known) == [])
    }

    /// All operations of the document, by path and method.
    private func operations(_ json: OrderedJSON) -> [(name: String, operation: OrderedJSON)] {
        guard case .object(let paths)? = json["paths"] else { return [] }
        return paths.flatMap { path -> [(String, OrderedJSON)] in
            guard case .object(let methods) = path.value else { return [] }
            return methods.map { ("\($0.name) \(path.name)", $0.value) }
        }
    }

    private func members(_ value: OrderedJSON?) -> [OrderedJSON.Member] {
        if case .object(let members)? = value { members } else { [] }
    }

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
                    // YAML has the form of the JSON beside it.
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
        func text(_ value: OrderedJSON) -> String { String(decoding: value.bytes, as: UTF8.self) }
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
        // RFC 7396: what is null goes.
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
