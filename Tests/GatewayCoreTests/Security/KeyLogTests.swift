import GatewayConfiguration
import GatewayCore
import Synchronization
import TLSEngine
import Testing

@Suite("Key logs of the gateway")
struct KeyLogTests {
    @Test func fileThatCannotBeWrittenIsAWarning() throws {
        let lines = Mutex("")
        let log = TunnelLog(
            LogSettings(),
            writer: LogWriter(onOwnThread: false) { bytes in
                lines.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
            })
        var client = ClientTLSSettings()
        client.keyLog = "/nowhere/keys.log"
        let configuration = try TLSMaterial.configuration(client, speaksWebSocket: false, log: log)
        guard case .file("/nowhere/keys.log", let failed?) = configuration.keyLog else {
            Issue.record("\(String(describing: configuration.keyLog))")
            return
        }
        failed()
        let text = "/nowhere/keys.log: a line of the key log could not be written"
        #expect(lines.withLock { $0.contains("warning") && $0.contains(text) })
    }
}
