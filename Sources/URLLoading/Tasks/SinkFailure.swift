import Foundation

/// Why content could not be put where it belongs.
struct SinkFailure: Error {
    let code: URLError.Code
    let cause: any Error
}
