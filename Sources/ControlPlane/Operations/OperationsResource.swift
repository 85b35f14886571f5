import ControlAPI
import HTTPTypes
import Hummingbird
import HummingbirdCore

/// `/v1/operations`: requests that go on while nobody waits.
struct OperationsResource: Sendable {
    let context: ControlContext

    private var board: OperationBoard { self.context.operations }

    var operations: [Operation] {
        let one = "/v1/operations/{id}"
        return [
            Operation("listOperations", .get, "/v1/operations", .read) { self.list($0) },
            Operation("getOperation", .get, one, .read) { try await self.get($0) },
            Operation("cancelOperation", .delete, one, .operate) { try await self.cancel($0) },
        ]
    }

    private func find(_ call: ControlCall) throws(ControlProblem) -> RunningOperation {
        let name = call.parameters["id"] ?? ""
        guard let running = self.board.find(name), running.isShown(to: call.caller) else {
            throw ControlProblem(
                404, "unknown-operation", "There is no operation \(name.prefix(64)), and none is remembered.")
        }
        return running
    }

    private func list(_ call: ControlCall) -> Response {
        let shown = self.board.all.filter { $0.isShown(to: call.caller) }
        return .json(
            OperationList(
                items: shown.map { running in
                    var record = running.record
                    // Asked for one by one.
                    record.answer = nil
                    return record
                }))
    }

    private func get(_ call: ControlCall) async throws -> Response {
        let running = try self.find(call)
        if let seconds = call.waitPreference() { _ = await running.outcome(within: .seconds(seconds)) }
        return .json(running.record)
    }

    private func cancel(_ call: ControlCall) async throws -> Response {
        let running = try self.find(call)
        guard running.outcome == nil else {
            self.board.remove(running)
            return .noContent
        }
        running.giveUp()
        let isOver = await running.outcome(within: .seconds(call.waitPreference() ?? 5)) != nil
        return .json(running.record, status: isOver ? .ok : .accepted)
    }
}
