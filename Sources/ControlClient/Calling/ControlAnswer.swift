import Foundation
import URLLoading

/// What a control plane answered, its content whole.
package struct ControlAnswer: Sendable {
    package let status: Int
    package let headers: ControlHeaders
    /// As it came.
    package let body: Data

    package init(status: Int, headers: ControlHeaders, body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// - Throws: `ControlFailure` for content that does not say what it should.
    package func decoded<Model: Decodable>(_ type: Model.Type) throws(ControlFailure) -> Model {
        do {
            return try JSONDecoder().decode(type, from: self.body)
        } catch {
            throw ControlFailure(
                .nonsense, "the answer is not what was expected: \(ControlFailure.words(error))",
                remedy: "client and gateway may be of different versions: compare 'sluice --version' with GET /version")
        }
    }
}
