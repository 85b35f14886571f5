import ControlAPI
import ControlPlane
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
        ).document
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
        #expect(OpenAPIDocument.notedMembers.subtracting(known) == [])
    }

    @Test func requestsAreStrict() throws {
        let schemas = try self.document().json["components"]?["schemas"]
        #expect(schemas?["OpenRequest"]?["additionalProperties"] == false)
        #expect(schemas?["TLSRequest"]?["additionalProperties"] == false)
        #expect(schemas?["OpenRequest"]?["required"] == ["url"])
        #expect(schemas?["Connection"]?["additionalProperties"] == nil)
    }
}
