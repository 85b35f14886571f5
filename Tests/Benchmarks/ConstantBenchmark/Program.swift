import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore

/// The yardstick for the cost of a request: a server that answers every request with the same bytes.
///
///     ConstantBenchmark PORT PATH SIZE
@main
struct Program {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 4, let port = Int(words[1]), let size = Int(words[3]), size >= 0 else {
            print("ConstantBenchmark PORT PATH SIZE")
            return
        }
        let content = ByteBuffer(repeating: UInt8(ascii: "x"), count: size)
        let router = Router()
        router.get(RouterPath(words[2])) { _, _ in
            Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: content))
        }
        var logger = Logger(label: "constant")
        logger.logLevel = .error
        let application = Application(
            router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port)),
            logger: logger)
        try await application.runService()
    }
}
