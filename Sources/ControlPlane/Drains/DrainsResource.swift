import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore

/// `/v1/drains`: closing many connections at a rate.
struct DrainsResource: Sendable {
    let context: ControlContext
    let connections: ConnectionsResource
    private let registry = DrainRegistry()

    var operations: [Operation] {
        let one = PathTemplate("/v1/drains/{id}", .init("The drain's id.", example: "1"))
        return [
            Operation(
                "listDrains", .get, "/v1/drains", .read,
                OperationDocument(
                    "Lists drains, including ended ones", responses: [.init(200, "All drains", .list(Drain.self))])
            ) { _ in .json(await self.registry.all) },
            Operation("startDrain", .post, "/v1/drains", .operate, Self.startDocument) { try await self.start($0) },
            Operation("getDrain", .get, one, .read, Self.document("Gets a drain")) {
                .json(await (try self.run($0)).snapshot())
            },
            Operation(
                "cancelDrain", .delete, one, .operate,
                Self.document("Cancels a drain; connections that are closing already still close")
            ) { try await self.update($0) { await $0.cancel() } },
            Operation("stopDrain", .post, one + ":cancel", .operate, Self.document("Same as DELETE")) {
                try await self.update($0) { await $0.cancel() }
            },
            Operation(
                "pauseDrain", .post, one + ":pause", .operate, Self.document("Pauses a drain until it is resumed")
            ) { try await self.update($0) { await $0.pause() } },
            Operation("resumeDrain", .post, one + ":resume", .operate, Self.document("Resumes a drain")) {
                try await self.update($0) { await $0.resume() }
            },
        ]
    }

    private static let startDocument = OperationDocument(
        "Closes selected connections at a rate", parameters: BulkSelection.parameters, headers: .wait,
        body: [.json(BulkRequest.self)],
        responses: [
            .init(
                200, "The ended drain, or that of each node; or the preview",
                .json(Drain.self, or: DrainList.self, BulkAnswer.self)),
            .init(
                202, "The running drain, or that of each node", .json(Drain.self, or: DrainList.self),
                headers: .location),
        ])

    private static func document(_ summary: String) -> OperationDocument {
        OperationDocument(
            summary, responses: [.init(200, "The current state", .json(Drain.self))], problems: [404, 409])
    }

    private func run(_ call: ControlCall) throws(ControlProblem) -> DrainRun {
        let name = call.parameters["id"] ?? ""
        guard let run = self.registry.find(name) else {
            throw ControlProblem(404, "unknown-drain", "There is no drain \(name.prefix(64)).")
        }
        return run
    }

    private func start(_ call: ControlCall) async throws -> Response {
        let request = try await call.bulkRequest()
        if let names = request.nodes { return try await self.start(request, on: names, call) }
        return try await self.start(request, waiting: call.waitPreference())
    }

    /// - Parameter seconds: how long the response waits for the drain's end.
    func start(_ request: BulkRequest, waiting seconds: Int?) async throws -> Response {
        let selection = try BulkSelection(request, defaultCode: 1001)
        let pace = try DrainPace(request)
        let keys = await self.connections.keys(matching: selection.filter)
        if selection.isPreview { return .json(pace.preview(of: keys.count)) }
        let run = try self.registry.add { id in
            DrainRun(id: id, selection, keys, pace: pace, context: self.context)
        }
        Task { await run.run() }
        if let seconds { await run.ended.wait(within: .seconds(seconds)) }
        let drain = await run.snapshot()
        let isDone = drain.endedAt != nil
        return .json(
            drain, status: isDone ? .ok : .accepted, headers: [.location: "/v1/drains/\(drain.id)"])
    }

    private func update(_ call: ControlCall, _ body: (DrainRun) async -> Bool) async throws -> Response {
        let run = try self.run(call)
        guard await body(run) else {
            throw ControlProblem(409, "state-conflict", "The drain is \(await run.drain.state).")
        }
        return .json(await run.snapshot())
    }
}
