from konverge.k8s.core.v1 import Container

Container(name="server", image="mail:1", ports=[143])  # mistake
