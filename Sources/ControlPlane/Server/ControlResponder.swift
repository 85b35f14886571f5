import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import SessionTasks

/// Takes every request: finds its operation, asks the gatekeeper, and turns what goes wrong into a problem.
struct ControlResponder: HTTPResponder {
    typealias Context = ControlRequestContext

    let table: OperationTable
    let gatekeeper: any Gatekeeper
    let audit: any AuditTrail
    let figures: RequestFigures
    let idempotency = Idempotency()

    func respond(to request: Request, context: ControlRequestContext) async throws -> Response {
        do {
            let response = try await self.answer(request, context)
            return request.method == .head ? response.withoutBody : response
        } catch let problem as ControlProblem {
            return problem.response
        } catch is CancellationError {
            return ControlProblem(503, "cancelled", "The request was given up.").retryable().response
        } catch {
            context.logger.error("an operation failed", metadata: ["error": "\(error)"])
            return ControlProblem(500, "internal-fault", "A fault of the gateway itself; its log says more.").response
        }
    }

    private func answer(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let target = request.head.path ?? "/"
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        switch self.table.find(request.method, target[..<mark]) {
        case .none:
            throw ControlProblem(
                404, "unknown-path", "There is nothing at this path; /openapi.json lists what there is.")
        case .wrongMethod(let methods):
            var problem = ControlProblem(
                405, "method-not-allowed", "This resource has \(methods.joined(separator: ", ")).")
            problem.allowed = methods
            throw problem
        case .found(let operation, let parameters):
            let caller = try await self.gatekeeper.admit(request, to: operation, context: context)
            let query = try Query(mark == target.endIndex ? nil : String(target[target.index(after: mark)...]))
            if let unknown = query.pairs.first(where: { !operation.parameters.contains($0.name) }) {
                throw ControlProblem(
                    400, "unknown-parameter",
                    "The parameter \(unknown.name.prefix(64)) means nothing here\(Self.known(operation))."
                )
                .at(parameter: String(unknown.name.prefix(64)))
            }
            let call = ControlCall(
                request: request, context: context, operation: operation, parameters: parameters, query: query,
                caller: caller)
            return try await self.carryOut(call)
        }
    }

    private static func known(_ operation: Operation) -> String {
        operation.parameters.isEmpty ? "" : "; known are \(operation.parameters.sorted().joined(separator: ", "))"
    }

    private func carryOut(_ call: ControlCall) async throws -> Response {
        do {
            let response = try await self.idempotency.once(call) { try await self.perform($0) }
            self.figures.answered(call.operation.name, status: response.status.code)
            return response
        } catch {
            self.figures.answered(call.operation.name, status: (error as? ControlProblem)?.status ?? 500)
            throw error
        }
    }

    private func perform(_ call: ControlCall) async throws -> Response {
        guard call.operation.isWrite else { return try await call.operation.handler(call) }
        do {
            let response = try await call.operation.handler(call)
            self.audit.record(call, status: response.status.code, code: nil)
            return response
        } catch let problem as ControlProblem {
            self.audit.record(call, status: problem.status, code: problem.code)
            throw problem
        } catch is CancellationError {
            // Nobody is there any more to read an answer.
            self.audit.record(call, status: 499, code: "client-gone")
            throw CancellationError()
        } catch {
            self.audit.record(call, status: 500, code: "internal-fault")
            throw error
        }
    }
}

extension Response {
    /// The same head, as HEAD wants it (RFC 9110 §9.3.2).
    var withoutBody: Response {
        var headers = self.headers
        if let length = self.body.contentLength { headers[.contentLength] = "\(length)" }
        return Response(status: self.status, headers: headers, body: ResponseBody())
    }
}
