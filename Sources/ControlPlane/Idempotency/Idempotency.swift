import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// Makes a POST with an Idempotency-Key happen once, however often it is sent.
struct Idempotency: Sendable {
    static let keyLimit = 255

    let answers = KeptAnswers()

    /// Carries `call` out by `perform`, or gives the answer it had before.
    func once(
        _ call: ControlCall, _ perform: @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        guard call.operation.method == .post, let key = call.request.headers[.idempotencyKey] else {
            return try await perform(call)
        }
        guard (1...Self.keyLimit).contains(key.utf8.count) else {
            throw ControlProblem(400, "invalid-header", "Idempotency-Key is to have 1 to \(Self.keyLimit) bytes.")
        }
        var call = call
        let body = try await call.body()
        call.request.body = RequestBody(buffer: body)
        let name = "\(call.caller.name) \(key)"
        let asked = Array("\(call.request.head.path ?? "")\n".utf8) + Array(body.readableBytesView)
        switch self.answers.begin(name, fingerprint: Fingerprint.of(asked)) {
        case .underWay:
            throw ControlProblem(409, "under-way", "The request with this key is being carried out.").retryable(
                after: 1)
        case .other:
            throw ControlProblem(422, "key-reused", "This Idempotency-Key came with another request before.")
        case .answered(let answer):
            return Response(
                status: answer.status, headers: answer.headers,
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
        case .new: return try await self.carryOut(call, name, perform)
        }
    }

    private func carryOut(
        _ call: ControlCall, _ name: String, _ perform: @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        do {
            let response = try await perform(call)
            return try await self.keep(response, name)
        } catch let problem as ControlProblem where problem.status < 500 && !problem.isRetryable {
            return try await self.keep(problem.response, name)
        } catch {
            self.answers.giveUp(name)
            throw error
        }
    }

    private func keep(_ response: Response, _ name: String) async throws -> Response {
        let collected = CollectedBody()
        try await response.body.write(collected)
        let answer = KeptAnswers.Answer(status: response.status, headers: response.headers, body: collected.bytes)
        self.answers.finish(name, answer)
        return Response(
            status: answer.status, headers: answer.headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: collected.bytes)))
    }
}
