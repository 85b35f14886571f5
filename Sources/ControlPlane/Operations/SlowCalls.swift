import ControlAPI
import HTTPTypes
import Hummingbird
import HummingbirdCore

/// Lets a client that prefers so go, while its request is carried out (RFC 7240).
struct SlowCalls: Sendable {
    /// For what is opened to get its name, which takes a turn of a loop.
    private static let naming = Duration.seconds(2)

    let board: OperationBoard

    func run(
        _ call: ControlCall, _ perform: @escaping @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        guard call.operation.isSlow, call.prefersAsynchronous || call.waitPreference() != nil else {
            return try await perform(call)
        }
        var call = call
        // Its connection is free for other requests as soon as this one is answered.
        call.request.body = RequestBody(buffer: try await call.body())
        let running = try self.board.add(call.operation, by: call.caller)
        call.progress = running
        running.start { [call] in try await perform(call) }
        if let outcome = await Self.early(running, call) {
            self.board.remove(running)
            return try outcome.response()
        }
        return .json(
            JSONBody.encode(running.record), status: .accepted,
            headers: [.location: "/v1/operations/\(running.number)"])
    }

    /// What it came to, if the client can be told at once: within the time that it is willing to wait, or that it asked
    /// for something that cannot be.
    private static func early(_ running: RunningOperation, _ call: ControlCall) async -> OperationOutcome? {
        if let seconds = call.waitPreference() { return await running.outcome(within: .seconds(seconds)) }
        await running.waitForName(within: Self.naming)
        guard case .problem(let problem)? = running.outcome, problem.status < 500 else { return nil }
        return running.outcome
    }
}
