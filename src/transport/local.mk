# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/transport/transport.c src/transport/transport.h src/transport/net.h \
	src/transport/slots.c src/transport/slots.h \
	src/transport/fifo.c src/transport/fifo.h \
	src/transport/rma.c src/transport/rma.h \
	src/transport/offer.c src/transport/offer.h \
	src/transport/cma.c src/transport/cma.h \
	src/transport/hostmem.c src/transport/hostmem.h \
	src/transport/self.c \
	src/transport/shm.c src/transport/shm.h src/transport/shm_table.c \
	src/transport/shm_wire.h src/transport/shm_hello.c src/transport/shm_service.c
