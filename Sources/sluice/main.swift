import Commands

Sluice.main()
