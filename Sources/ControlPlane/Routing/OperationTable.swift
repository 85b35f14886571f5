import HTTPTypes
import Hummingbird
import HummingbirdCore

/// Every operation of the REST interface.
struct OperationTable: Sendable {
    enum Finding {
        case found(Operation, parameters: [String: String])
        /// The path is there, with these methods.
        case wrongMethod([String])
        case none
    }

    let operations: [Operation]

    init(_ operations: [Operation]) {
        self.operations = operations
    }

    /// - Parameter path: without the query, as it was sent.
    func find(_ method: HTTPRequest.Method, _ path: some StringProtocol) -> Finding {
        guard path.first == "/" else { return .none }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { Substring($0) }
        var methods: [String] = []
        for operation in self.operations {
            guard let parameters = operation.template.match(segments) else { continue }
            if operation.method == method || (method == .head && operation.method == .get) {
                return .found(operation, parameters: parameters)
            }
            methods.append(operation.method.rawValue)
            if operation.method == .get { methods.append(HTTPRequest.Method.head.rawValue) }
        }
        return methods.isEmpty ? .none : .wrongMethod(Array(Set(methods)).sorted())
    }
}
