import Foundation
import URLLoading

/// The arguments of a completion handler.
struct Loaded: Sendable {
    let data: Data?
    let response: URLResponse?
    let error: (any Error)?

    var http: HTTPURLResponse? { self.response as? HTTPURLResponse }
    var status: Int? { self.http?.statusCode }
    var text: String? { self.data.map { String(decoding: $0, as: UTF8.self) } }
    var code: URLError.Code? { (self.error as? URLError)?.code }
}
