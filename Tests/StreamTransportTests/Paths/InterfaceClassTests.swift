import ByteKernels
import StreamTransport
import Testing

@Suite("Classes of network interfaces")
struct InterfaceClassTests {
    @Test func aModemIsCellularAndExpensive() {
        #expect(InterfaceClasses(uevent: "DEVTYPE=wwan\nINTERFACE=wwan0\nIFINDEX=3\n") == [.cellular, .expensive])
        #expect(InterfaceClasses(uevent: "DEVTYPE=wlan\nINTERFACE=wwan0\nIFINDEX=3\n") == [])
        #expect(InterfaceClasses(uevent: "") == [])
    }

    @Test func declaredInterfacesAreFoundByName() {
        let declared = DeclaredInterfaces(
            "wwan0=cellular; usb*=expensive\neth1=constrained,expensive eth0=none wlan0= =x a b=")
        #expect(declared.classes(of: "wwan0") == [.cellular, .expensive])
        #expect(declared.classes(of: "usb7") == .expensive)
        #expect(declared.classes(of: "eth1") == [.constrained, .expensive])
        #expect(declared.classes(of: "eth0") == [] && declared.classes(of: "wlan0") == [])
        for name in ["wwan01", "us", "a", "", "eth2"] { #expect(declared.classes(of: name) == nil) }
        #expect(DeclaredInterfaces(String(repeating: "a=cellular ", count: 1000)).classes(of: "a") == nil)
    }
}
