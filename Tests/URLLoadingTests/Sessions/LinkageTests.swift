import Foundation
import Testing
import URLLoading

@Suite("What the library stands on")
struct LinkageTests {
    @Test func isNeitherTheToolchainsLoadingSystemNorLibcurl() throws {
        let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
        #expect(maps.contains("libFoundation"), "the list of libraries was not read")
        #expect(!maps.contains("FoundationNetworking") && !maps.contains("libcurl"))
    }
}
