import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// What an operation came to.
enum OperationOutcome: Sendable {
    case answered(status: HTTPResponse.Status, headers: HTTPFields, body: [UInt8])
    case problem(ControlProblem)
    /// A fault of our own.
    case fault(any Error)

    static func of(_ work: @Sendable () async throws -> Response) async -> OperationOutcome {
        do {
            let response = try await work()
            let collected = CollectedBody()
            try await response.body.write(collected)
            return .answered(status: response.status, headers: response.headers, body: collected.bytes)
        } catch let problem as ControlProblem {
            return .problem(problem)
        } catch is CancellationError {
            return .problem(ControlProblem(409, "cancelled", "The operation was given up."))
        } catch {
            return .fault(error)
        }
    }

    /// The answer, as if its client had waited.
    func response() throws -> Response {
        switch self {
        case .answered(let status, let headers, let body):
            return Response(
                status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
        case .problem(let problem): throw problem
        case .fault(let error): throw error
        }
    }

    var hasSucceeded: Bool {
        if case .answered = self { true } else { false }
    }

    var status: Int {
        switch self {
        case .answered(let status, _, _): status.code
        case .problem(let problem): problem.status
        case .fault: 500
        }
    }

    var location: String? {
        if case .answered(_, let headers, _) = self { headers[.location] } else { nil }
    }

    var body: [UInt8] {
        switch self {
        case .answered(_, _, let body): body
        case .problem(let problem): problem.json
        case .fault:
            ControlProblem(500, "internal-fault", "A fault of the gateway itself; its log says more.").json
        }
    }
}
